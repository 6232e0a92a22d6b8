"""GET /consumers: every reader of the log, of whatever kind, and how far it is behind."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

import api.groups
from api import consumers
from api.groups import PATIENCE, Groups
from api.pool import SESSION
from consumers.receipts.group import Group
from rocket_rides import groups
from rocket_rides.log import START
from rocket_rides.seen_groups import SeenGroup, look
from rocket_rides.standings import values
from streamer.trimming import Caps, Trimmer
from tests.support.api import Api
from tests.support.world import World, catch_up, drain, eventually, free_port

AGES = "UPDATE rides SET created_at = now() - make_interval(secs => 1000 - 10 * id)"
OUTSIDE = """
    INSERT INTO checkpoints (kind, name, last_ride_id)
    SELECT 'outside', to_char(n, 'fm00'), 10000 * n FROM generate_series(0, 10) n
"""
MANY = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, %s)"
ROLLED_UP = "INSERT INTO checkpoints (kind, name, last_ride_id) VALUES ('rollup', 'rollup', %s)"
COMPLETE = "UPDATE rollup_state SET complete_to = %s"

DELIVERED = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at)
    SELECT id, 'delivered', 1, now(), now() FROM unnest(%s::bigint[]) id
"""

Shown = dict[str, Any]


def group(world: World, name: str = "workers") -> Group:
    return Group(world.log(), name, "member")


def shown(world: World, name: str) -> Shown:
    """The reader of that name, as it is shown now."""
    readers = consumers.show(world.connection, look(world.log()))
    [reader] = [reader for reader in readers if reader["name"] == name]
    return reader


def lag(world: World, name: str = "workers") -> tuple[int | None, int | None]:
    """In rides, and in seconds, rounded."""
    reader = shown(world, name)
    seconds = reader["seconds_behind"]
    return reader["rides_behind"], seconds if seconds is None else round(seconds, -1)


def send(world: World, rides: int) -> list[str]:
    """Send rides, the nth of which is 1000 - 10 n seconds old; returns the entries' ids."""
    world.take(*[1] * rides)
    world.connection.execute(AGES)
    drain(world.streamer())
    return [entry.redis_id for entry in world.log().read(START, 100_000)]


def trim_all(world: World) -> None:
    Trimmer(world.connection, world.log(), Caps(1000, 0)).trim()
    assert world.log().length() == 0


def test_a_checkpoint_lags_by_the_rides_that_it_has_not_counted(world: World) -> None:
    slow, fast = world.consumer("slow", batch_size=3), world.consumer("fast")
    assert lag(world, "slow") == (0, 0)
    send(world, 10)
    slow.run_once()
    catch_up(fast)
    assert lag(world, "slow") == (7, 960)  # the fourth ride is the oldest of seven
    assert lag(world, "fast") == (0, 0)
    assert shown(world, "fast")["kind"] == "total"
    # Not even the streamer has it yet, and every consumer lags by it.
    world.take(1)
    rides, seconds = shown(world, "fast")["rides_behind"], shown(world, "fast")["seconds_behind"]
    assert rides == 1
    assert 0 <= seconds < 60


def test_the_rollup_lags_by_the_rides_whose_minutes_are_not_made(world: World) -> None:
    send(world, 10)
    world.connection.execute(ROLLED_UP, [10])
    world.connection.execute(COMPLETE, [6])
    world.consumer("rollup")  # a total of that name
    total, rollup = sorted(
        consumers.show(world.connection, []), key=lambda reader: str(reader["kind"]), reverse=True
    )
    assert (total["kind"], total["rides_behind"], total["total_distance"]) == ("total", 10, 0)
    assert (rollup["kind"], rollup["rides_behind"], rollup["total_distance"]) == ("rollup", 4, None)
    assert round(rollup["seconds_behind"], -1) == 930
    world.connection.execute(COMPLETE, [10])
    world.connection.execute("DELETE FROM consumer_states")
    world.connection.execute("DELETE FROM checkpoints WHERE kind = 'total'")
    assert lag(world, "rollup") == (0, 0)


@pytest.mark.stream_servers
def test_a_group_lags_by_what_is_pending_and_by_what_it_was_not_given(world: World) -> None:
    workers = group(world)
    workers.make()
    assert lag(world) == (0, 0)
    ids = send(world, 10)
    assert lag(world) == (10, 990)
    workers.read(6)
    assert lag(world) == (10, 990)
    workers.ack([ids[0], ids[1], ids[4]])
    assert lag(world) == (7, 970)  # 3, 4 and 6 are pending; 7 to 10 wait
    reader = shown(world, "workers")
    assert (reader["kind"], reader["pending_entries"], reader["last_ride_id"]) == ("group", 3, 6)
    assert (reader["last_redis_id"], reader["total_distance"]) == (ids[5], None)
    workers.ack(ids)
    assert lag(world) == (4, 930)
    workers.ack([entry.redis_id for entry in workers.read(10)])
    assert lag(world) == (0, 0)
    world.take(1)  # has not been sent yet
    assert lag(world) == (1, 0)
    world.log().start_anew()
    assert [reader["kind"] for reader in consumers.show(world.connection, look(world.log()))] == []


@pytest.mark.stream_servers
def test_a_groups_lag_is_true_or_null_when_its_entries_are_gone(world: World) -> None:
    """What was trimmed may have been given to nobody, and no server tells."""
    workers, idle, done = group(world), group(world, "idle"), group(world, "done")
    for each in (workers, idle, done):
        each.make()
    ids = send(world, 10)
    workers.read(8)
    workers.ack(ids[2:8])
    done.ack([entry.redis_id for entry in done.read(10)])
    trim_all(world)
    assert lag(world) == (None, None)
    assert lag(world, "idle") == (10, 990)  # it was never given anything
    assert lag(world, "done") == (0, 0)
    new = send(world, 2)
    assert lag(world) == lag(world, "done") == (None, None)
    assert lag(world, "idle") == (12, 990)
    workers.read(1)
    done.ack([entry.redis_id for entry in done.read(1)])
    assert lag(world) == (4, None)  # nobody knows which rides the first two were
    assert lag(world, "done") == (1, 880)
    workers.ack(ids + new)
    assert lag(world) == (1, 880)


def test_this_databases_own_group_lags_by_the_receipts_that_are_to_come(world: World) -> None:
    """Wherever their entries are, and whether Redis tells or not."""
    own = group(world, groups.name_of(world.connection))
    own.make()
    ids = send(world, 10)

    def both() -> set[tuple[int | None, int | None]]:
        lags = [lag(world, own.name)]
        [reader] = consumers.show(world.connection, None)
        assert {reader[name] for name in ("last_ride_id", "pending_entries")} == {None}
        return {*lags, (reader["rides_behind"], round(reader["seconds_behind"], -1))}

    assert both() == {(10, 990)}
    own.read(10)
    world.connection.execute(DELIVERED, [[1, 2, 4]])
    assert both() == {(7, 970)}  # neither acknowledged nor swept
    own.ack(ids)
    trim_all(world)
    assert both() == {(7, 970)}
    world.connection.execute("UPDATE receipts_state SET complete_to = 2")
    world.connection.execute(DELIVERED, [[3, 5, 6, 7, 8, 9]])
    assert both() == {(1, 900)}
    world.connection.execute(DELIVERED, [[10]])
    assert both() == {(0, 0)}
    world.connection.execute("UPDATE receipts_state SET complete_to = 10")
    assert both() == {(0, 0)}
    world.take(1)
    assert both() == {(1, 0)}


def test_entries_that_are_not_this_databases_tell_nothing_of_a_lag(world: World) -> None:
    workers = group(world)
    workers.make()
    send(world, 3)
    foreign = {"data": '{"id": 2, "distance": 1}', "prev": "1", "term": "f" * 16}
    for fields in (foreign, foreign | {"term": b"\0\xff"}, {"nonsense": b"\0"}):
        world.log().redis.xadd(world.stream, fields)  # type: ignore[arg-type]
        [*_, last] = given = [entry.redis_id for entry in workers.read(10)]
        workers.ack(given[:-1])
        assert lag(world) == (None, None)  # it stands there, and has not acknowledged it
        workers.ack([last])
        assert lag(world) == (None, None)
        assert shown(world, "workers")["last_ride_id"] is None


def test_lags_cost_the_same_however_large_and_however_many_they_are(world: World) -> None:
    world.connection.execute(MANY, [100_500])
    world.connection.execute(OUTSIDE)
    connection = world.connect(**SESSION)  # as the API's are
    lags = [reader["rides_behind"] for reader in consumers.show(connection, None)]
    assert lags == [100_000, *range(90_500, 0, -10_000), 100_000]  # the last one is the receipts'
    own = groups.name_of(connection)
    plan = connection.execute(
        f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {consumers.CONSUMERS}",
        values([SeenGroup(own)], own, consumers.LIMIT),
    ).fetchone()
    assert plan is not None
    assert 100_000 < rides_read(plan[0][0]["Plan"]) < 201_000


def rides_read(plan: dict[str, Any]) -> int:
    """How many rows of `rides` a plan has visited in all."""
    of_rides = plan.get("Relation Name") == "rides"
    own = int(plan["Actual Rows"] * plan["Actual Loops"]) if of_rides else 0
    return own + sum(map(rides_read, plan.get("Plans", [])))


def test_a_ride_of_no_finite_age_makes_the_seconds_unknown(world: World) -> None:
    world.consumer()
    world.take(1, 1)
    world.connection.execute("UPDATE rides SET created_at = '-infinity' WHERE id = 1")
    assert lag(world, "consumer0") == (2, None)
    world.connection.execute("UPDATE rides SET created_at = now() + '1 day' WHERE id = 1")
    assert lag(world, "consumer0") == (2, 0)


def without_redis(world: World, rides: int = 0, seconds: float = 0) -> Shown:
    """This database's own group while Redis does not tell."""
    unknown = (
        "total_distance",
        "last_ride_id",
        "last_redis_id",
        "unbelieved_entries",
        "pending_entries",
        "reset",
    )
    return {
        "kind": "group",
        "name": groups.name_of(world.connection),
        **dict.fromkeys(unknown),
        "rides_behind": rides,
        "seconds_behind": seconds,
    }


def readers(api: Api) -> list[Shown]:
    found: list[Shown] = api.client.get("/consumers").json()["consumers"]
    return found


def took(api: Api) -> float:
    """Seconds that GET /consumers takes."""
    began = time.monotonic()
    readers(api)
    return time.monotonic() - began


@pytest.fixture
def api_without_redis(world: World) -> Iterator[Api]:
    api = Api(world, REDIS_URL=f"redis://127.0.0.1:{free_port()}")
    yield api
    api.client.close()


def test_the_api_does_not_depend_on_redis(world: World, api_without_redis: Api) -> None:
    api = api_without_redis
    world.consumer()
    assert api.post("5").status_code == 201
    assert api.ready()
    total, own = readers(api)
    assert (total["name"], total["rides_behind"]) == ("consumer0", 1)
    assert own == without_redis(world, 1, own["seconds_behind"])
    assert 0 < own["seconds_behind"] < 60


@contextmanager
def hanging(world: World) -> Iterator[None]:
    """Redis takes connections, and answers nothing."""
    with redis.Redis.from_url(world.redis.url) as control:
        server = control.info("server")["process_id"]
    os.kill(server, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server, signal.SIGCONT)


def test_a_redis_that_hangs_delays_nothing_and_is_asked_again(world: World) -> None:
    api = Api(world, API_WORKERS="1")
    group(world).make()
    [workers] = readers(api)
    assert (workers["name"], workers["rides_behind"]) == ("workers", 0)
    with hanging(world):
        eventually(lambda: readers(api) == [without_redis(world)])
        assert min(took(api) for _ in range(3)) < PATIENCE / 2
        assert api.ready()
    eventually(lambda: readers(api) == [workers])
    api.client.close()
    assert api.service.stop() == 0
    assert "Traceback" not in api.service.output.read_text()


def test_after_a_failure_each_answer_tells_again_however_often_it_is_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.groups, "FRESH", 0)
    monkeypatch.setattr(api.groups, "QUIET", 0.2)
    seen = Groups(world.redis.url, world.stream)
    assert seen.now() == []
    with hanging(world):
        assert seen.now() is None
    eventually(lambda: seen.now() == [], patience=3)
    assert [seen.now() for _ in range(10)] == [[]] * 10


def test_a_redis_that_was_away_at_first_is_shown_once_it_is_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.groups, "QUIET", 0)
    socket = world.folder / "redis.sock"
    seen = Groups(f"unix://{socket}", world.stream)
    assert seen.now() is None
    socket.symlink_to(world.redis.url.removeprefix("unix://"))
    eventually(lambda: seen.now() == [], patience=3)
