"""`GET /log`: settled records of all kinds, in order, for readers outside of this project."""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest
from psycopg import IsolationLevel
from sqlalchemy import text

from api import feed
from api.feed import Asked, OtherHistory
from tests.support.api import OTHER_HISTORY, Api, is_problem
from tests.support.disasters import stranded
from tests.support.engine import connected
from tests.support.world import World, drain, take, transaction
from unified_log.repair import repair

FOR_EVER = "max-age=31536000, immutable"
RECORDS = "SELECT id::text, type, data::text FROM log_records WHERE id > %s ORDER BY id"
TERM = "0123456789abcdef"
MANY = (
    "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, 20000)",
    "INSERT INTO ratings (ride_id, stars) SELECT id, 5 FROM rides",
    "UPDATE streamer_state SET last_sent_id = (SELECT last_value FROM log_position)",
    f"INSERT INTO terms VALUES (cell_start(), '{TERM}')",
)


def exact(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


class Follower:
    """Follows the links, as a reader outside does."""

    def __init__(self, api: Api, after: int, given: str = "") -> None:
        self.api, self.at = api, f"/log?after={after}{given}"

    def page(self) -> httpx.Response:
        answer = self.api.client.get(self.at)
        assert answer.status_code == 200, answer.text
        self.at = str(answer.url.join(answer.links["next"]["url"]))
        return answer

    def to_the_end(self) -> list[Any]:
        """All events up to an empty page."""
        found: list[Any] = []
        while page := exact(self.page().text):
            found += page
        return found


@pytest.fixture(scope="module")
def live(module_world: World) -> Iterator[Api]:
    api = Api(module_world)
    yield api
    api.client.close()
    assert "Traceback" not in api.service.output.read_text()


@pytest.fixture
def end(module_world: World) -> int:
    """The position up to which earlier tests have sent all; a term has begun."""
    return module_world.send(1)[0]


def ids(events: list[Any]) -> list[int]:
    return [int(event["id"]) for event in events]


@pytest.mark.proves("feed")
def test_it_skips_nothing_and_has_each_settled_record_once_in_order(
    live: Api, module_world: World, end: int
) -> None:
    """Beside a transaction that commits a lower position late; what is staged only, it has not."""
    world, follower = module_world, Follower(live, end, "&limit=2")
    first = live.post("0.001").json()["ride"]["id"]
    assert live.client.post(f"/rides/{first}/rating", data={"stars": 5}).status_code == 201
    live.post("999999999.999")
    assert follower.to_the_end() == []
    drain(world.streamer())
    with transaction(world) as slow:
        take(slow, "539.837")
        world.take(2, 3)
        drain(world.streamer())
        found = follower.to_the_end()
        assert len(found) == 3
        slow.commit()
    drain(world.streamer())
    found += follower.to_the_end()
    records = world.connection.execute(RECORDS, [end]).fetchall()
    assert [(event["id"], event["type"], event["data"]) for event in found] == [
        (id_, type_, exact(data)) for id_, type_, data in records
    ]


def test_an_event_is_a_cloud_event_with_exact_numbers(
    live: Api, module_world: World, end: int
) -> None:
    [ride, odd] = module_world.send("539.837", "1000.5")
    change = "UPDATE rides SET created_at = %s WHERE id = %s"
    module_world.connection.execute(change, ["2026-03-28 20:00:00.25+00", ride])
    module_world.connection.execute(change, ["infinity", odd])
    answer = Follower(live, end).page()
    assert answer.headers["content-type"] == "application/cloudevents-batch+json"
    assert answer.json() == [
        {
            "specversion": "1.0",
            "id": str(ride),
            "source": f"/{module_world.stream}/cells/{module_world.start // 10**14}",
            "type": "ride.create",
            "time": "2026-03-28T20:00:00.25+00:00",
            "data": {"id": ride, "distance": 539.837},
        },
        {**answer.json()[1], "time": None},
    ]
    assert '"distance": 1000.500}' in answer.text


def test_a_full_page_never_changes_and_no_other_is_kept_by_a_cache(
    live: Api, module_world: World, end: int
) -> None:
    """Nor one whose URL names no history."""
    start = Follower(live, end, "&limit=2")
    assert start.page().headers["cache-control"] == "no-store"
    module_world.send(1, 2, 3)
    again = Follower(live, end, "&limit=2")
    assert again.page().headers["cache-control"] == "no-store"  # full, and without a term
    full = live.client.get(start.at)
    assert (full.headers["cache-control"], len(full.json())) == (FOR_EVER, 2)
    last = live.client.get(f"/log{full.links['next']['url']}")
    assert (last.headers["cache-control"], len(last.json())) == ("no-store", 1)
    module_world.send(4)
    same = live.client.get(start.at)
    assert same.content == full.content


def test_a_page_of_some_types_says_up_to_where_there_is_no_other(
    live: Api, module_world: World, end: int
) -> None:
    rides = [live.post(each).json()["ride"]["id"] for each in (1, 2)]
    ratings = Follower(live, end, "&type=rating.create")
    both = Follower(live, end, "&type=ride.create&type=rating.create")
    drain(module_world.streamer())
    assert ratings.page().json() == []
    assert f"after={rides[-1]}&" in ratings.at
    rated = live.client.post(f"/rides/{rides[0]}/rating", data={"stars": 5})
    assert rated.status_code == 201
    drain(module_world.streamer())
    [rating] = ratings.to_the_end()
    assert rating["data"]["ride_id"] == rides[0]
    assert ids(both.to_the_end()) == [*rides, int(rating["id"])]


def test_the_same_page_has_one_link_however_it_was_asked_for(live: Api) -> None:
    """So that caches keep it once; and what is repeated, grows no link."""
    once = "after=0&limit=1&type=rating.create&type=ride.create"
    odd = "type=ride.create&limit=01&type=rating.create&type=ride.create&after=00"
    first, second = (live.client.get(f"/log?{each}").headers["link"] for each in (once, odd))
    assert first == second


REFUSED = {
    "after=-1": "after must be a whole number from 0 to",
    "after=9223372036854775808": "after must be a whole number from 0 to",
    "after=1.0": "after must be a whole number",
    "after=%D9%A3": "after must be a whole number",
    "after=": "after must be a whole number",
    "after=1&after=2": "after is given more than once",
    "limit=0": "limit must be a whole number from 1 to 1000",
    "limit=1001": "limit must be a whole number from 1 to 1000",
    "term=x": "term must be the one of the link",
    "type=ride.creat": "'ride.creat' is not",
    "type=ride.create&type=a%00b": "which 'a\\x00b' is not",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_makes_no_sense_is_refused_with_a_reason(live: Api, query: str) -> None:
    answer = live.client.get(f"/log?{query}")
    assert is_problem(answer, 422)
    assert REFUSED[query] in answer.json()["detail"]


def test_a_reader_of_another_history_is_told_and_no_cache_keeps_that(
    live: Api, module_world: World, end: int
) -> None:
    for query in (f"after={end + 1000}", f"after={end}&term={TERM}", f"after=0&term={TERM}"):
        answer = live.client.get(f"/log?{query}")
        assert is_problem(answer, 410, OTHER_HISTORY)
        assert answer.headers["cache-control"] == "no-store"


def asked(world: World, after: int, term: str | None) -> Any:
    """The number of records that it has for a reader who stands there."""
    with connected(world) as connection:
        page = feed.page(connection, Asked(after, term, None, None))
    return len(json.loads(page.get_data()))


def newest(world: World) -> str:
    query = "SELECT term FROM terms ORDER BY after DESC LIMIT 1"
    return str(world.connection.execute(query).fetchone()[0])  # type: ignore[index]


def test_an_earlier_term_is_known_as_far_as_it_went(world: World) -> None:
    [first, second] = world.send(1, 2)
    term = newest(world)
    [third] = world.send(3)  # by another leader
    assert newest(world) != term
    assert [asked(world, at, term) for at in (world.start, first, second)] == [3, 2, 1]
    world.send(4)  # by a third
    with pytest.raises(OtherHistory):
        asked(world, third, term)


def test_a_term_that_was_replaced_is_known_up_to_where_it_began(world: World) -> None:
    [first] = world.send(1)
    idle = world.streamer()
    idle.run_once()
    unused = newest(world)
    [second] = world.send(2)
    assert newest(world) != unused
    assert asked(world, first, unused) == 1
    with pytest.raises(OtherHistory):
        asked(world, second, unused)


def test_a_repair_below_its_position_is_another_history(world: World) -> None:
    stranded(world)
    [last] = world.send(4)
    term = newest(world)
    assert asked(world, last, term) == 0
    repair(world.connect())
    with pytest.raises(OtherHistory):
        asked(world, last, term)
    assert asked(world, 0, None) == world.value("SELECT count(*) FROM rides")


def test_where_the_streamers_state_is_lost_it_says_so(live: Api, module_world: World) -> None:
    with transaction(module_world) as meanwhile:
        meanwhile.execute("CREATE TABLE kept AS TABLE streamer_state; DELETE FROM streamer_state")
        meanwhile.commit()
        answer = live.client.get("/log")
        meanwhile.execute("INSERT INTO streamer_state TABLE kept; DROP TABLE kept")
        meanwhile.commit()
    assert is_problem(answer, 503)
    assert "streamer_state is empty" in answer.json()["detail"]


def test_whoever_writes_meanwhile_has_no_conflict_with_it(world: World) -> None:
    """Not even a writer that has read what another, who has committed, wrote since."""
    world.send(1)
    with transaction(world) as writer, transaction(world) as other:
        for each in (writer, other):
            each.isolation_level = IsolationLevel.SERIALIZABLE
        writer.execute("SELECT count(*) FROM rides")
        other.execute("INSERT INTO rides (distance) VALUES (2)")
        other.commit()
        assert asked(world, 0, None) == 1
        writer.execute("INSERT INTO ratings (ride_id, stars) SELECT min(id), 5 FROM rides")
        writer.commit()


PLANS = "SELECT set_config('plan_cache_mode', :mode, false)"


def test_a_page_reads_its_own_rows_alone(world: World) -> None:
    """Amid tables without statistics, which the planner knows nothing of."""
    for statement in MANY:
        world.connection.execute(statement)
    values = {"after": world.start + 5000, "limit": 1000, "database": "", "types": None}
    explained = text(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {feed.PAGE.text}")
    with connected(world) as connection:
        for mode in ("force_custom_plan", "force_generic_plan"):
            connection.execute(text(PLANS), {"mode": mode})
            for types in (None, ["rating.create"]):
                asked = {**values, "types": types, "term": TERM}
                [plan] = connection.execute(explained, asked).scalar_one()
                assert not re.search("Bitmap|'(Incremental )?Sort'", str(plan))
                assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 100
