"""Ratings, the second kind of record: taken over HTTP once for each ride, and counted exactly."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from consumers.ratings.stars import Stars
from tests.support.api import Api, is_problem
from tests.support.disasters import stranded
from tests.support.entries import RATE, named
from tests.support.world import World, catch_up, drain, exact, transaction
from unified_log.errors import Unavailable
from unified_log.readers.reader import Reader
from unified_log.repair import repair

SUMS = "SELECT count(*), coalesce(sum(stars), 0) FROM ratings"
KEPT = "SELECT ratings, stars FROM rating_sums"


def rate(world: World, **stars: int) -> None:
    """Rate rides as the API would, by their numbers: `_1=5`."""
    for ride, given in stars.items():
        world.connection.execute(RATE, [int(ride[1:]), given])


def stars(world: World) -> Reader[Stars]:
    return Reader(world.log(), Stars(world.connect(), "ratings0"), batch_size=2)


def is_exact(world: World, reader: Reader[Stars]) -> bool:
    """Whether the reader is exact once it has caught up."""
    before = None
    while before != reader.at:
        before = reader.at
        reader.run_once()
    kept, truth = (world.connection.execute(query).fetchone() for query in (KEPT, SUMS))
    return kept == truth == (reader.handler.ratings, reader.handler.stars)


@pytest.fixture(scope="module")
def live(module_world: World) -> Iterator[Api]:
    """It has two workers, which meet in the database."""
    api = Api(module_world, API_WORKERS="2")
    yield api
    api.client.close()


@pytest.fixture
def api(live: Api, module_world: World) -> Api:
    """One for all tests."""
    return live.emptied(module_world)


def post(api: Api, ride: int, stars: object) -> httpx.Response:
    return api.client.post(f"/rides/{ride}/rating", data={"stars": stars})


def test_a_ride_is_rated_once_and_the_same_again_changes_nothing(
    api: Api, module_world: World
) -> None:
    rides = module_world.take(5, 5)
    ways = ({"data": {"stars": "4"}}, {"json": {"stars": 4, "why": [1]}})
    for ride, given in zip(rides, ways, strict=True):
        answers = [api.client.post(f"/rides/{ride}/rating", **given) for _ in range(2)]  # type: ignore[arg-type]
        assert [answer.status_code for answer in answers] == [201, 200]
        rating = {"rating": {"ride_id": ride, "stars": 4}}
        assert [answer.json() for answer in answers] == [rating] * 2
        other = post(api, ride, 5)
        assert is_problem(other, 409)
        assert other.json()["detail"] == f"ride {ride} was already rated: 4 of 5 stars"
    assert module_world.connection.execute(SUMS).fetchone() == (2, 8)
    assert module_world.staged() == 4


@pytest.mark.proves("rated-once")
def test_of_twenty_requests_at_once_one_rates_the_ride(api: Api, module_world: World) -> None:
    [ride] = module_world.take(5)
    with ThreadPoolExecutor(20) as threads:
        answers = threads.map(lambda _: post(api, ride, 3), range(20))
        statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] * 19 + [201]
    assert module_world.value("SELECT count(*) FROM ratings") == 1
    assert module_world.staged() == 2


def test_what_keeps_a_rating_from_being_taken_is_told_with_what_became_of_it(
    api: Api, module_world: World
) -> None:
    """Nothing, where the rides are locked; another request that is rating the ride may succeed."""
    [ride] = module_world.take(5)
    with transaction(module_world) as holding:
        holding.execute("LOCK TABLE rides IN ACCESS EXCLUSIVE MODE")
        assert is_problem(post(api, ride, 3), 503, "/openapi.json#rating-not-taken")
    with transaction(module_world) as holding:
        holding.execute(RATE, [ride, 3])
        assert is_problem(post(api, ride, 3), 503, "/openapi.json#rating-maybe-taken")


def test_what_is_no_rating_of_a_ride_is_refused(api: Api, module_world: World) -> None:
    [ride] = module_world.take(5)
    for other in (ride + 1, 2**63 - 1, 2**63, 10**30):
        assert is_problem(post(api, other, 3), 404)
    for stars in ("0", "6", "-1", "4.5", "04", "1e0", " 4", "", "four", "٤"):
        assert is_problem(post(api, ride, stars), 422)
    headers = {"Content-Type": "application/json"}
    for content in (
        '{"stars": true}', '{"stars": "4"}', '{"stars": null}', '{"stars": [4]}', "{}",
        '{"stars": 4, "stars": 4}', "[4]",
    ):  # fmt: skip
        given = {"content": content, "headers": headers}
        assert is_problem(api.client.post(f"/rides/{ride}/rating", **given), 422)  # type: ignore[arg-type]
    assert module_world.connection.execute(SUMS).fetchone() == (0, 0)
    assert module_world.staged() == 1


@pytest.mark.proves("kinds-count")
def test_rides_and_ratings_in_one_log_each_count_once(world: World) -> None:
    """Also where the log is lost with both kinds in it, and after a batch was sent twice."""
    total, reader = world.consumer(), stars(world)
    streamer = world.streamer(batch_size=3)
    world.take(1, 2)
    rate(world, _1=5, _2=4)
    world.take(3)
    streamer.run_once(double_send=True)
    drain(streamer)
    assert exact(world, total)
    assert is_exact(world, reader)
    world.take(4)
    rate(world, _3=1)
    drain(streamer)
    world.log().start_anew()
    rate(world, _4=2)
    drain(streamer)
    assert exact(world, total)
    assert is_exact(world, reader)
    healed = "SELECT name, gaps_healed, records_healed, entries_passed FROM checkpoints"
    assert {name: counts for name, *counts in world.connection.execute(healed)} == {
        "consumer0": [1, 1, 3],
        "ratings0": [1, 1, 3],
    }


def test_what_is_no_rating_is_set_aside_by_the_one_reader_that_handles_ratings(
    world: World,
) -> None:
    total, reader = world.consumer(), stars(world)
    world.take(1)
    with transaction(world) as staging:
        [(number,)] = staging.execute(
            "INSERT INTO ratings (ride_id, stars) VALUES (1, 5) RETURNING id"
        )
        data = f'{{"id": {number}, "ride_id": 1, "stars": 9}}'
        wrong = "INSERT INTO staged_log_records VALUES (%s, 'rating.create', %s)"
        staging.execute(wrong, [number, data])
        staging.commit()
    drain(world.streamer())
    assert exact(world, total)
    assert is_exact(world, reader)  # it heals what the entry did not tell
    found = world.connection.execute("SELECT consumer_kind, consumer_name FROM malformed_entries")
    assert found.fetchall() == [("ratings", "ratings0")]


def test_a_type_that_nobody_knows_passes_everyone(world: World) -> None:
    total, reader = world.consumer(), stars(world)
    world.connection.execute("CREATE TABLE tips (id bigint DEFAULT nextval('log_position'))")
    world.take(1)
    tip = world.value("INSERT INTO tips DEFAULT VALUES RETURNING id")
    stage = "INSERT INTO staged_log_records VALUES (%s, 'tip.create', '{}')"
    world.connection.execute(stage, [tip])
    rate(world, _1=5)
    drain(world.streamer())
    assert exact_up_to(world, total)
    assert is_exact(world, reader)
    assert world.value("SELECT count(*) FROM malformed_entries") == 0
    assert world.value("SELECT min(entries_passed) FROM checkpoints") == 2


def exact_up_to(world: World, total: object) -> bool:
    """Whether a total is exact; the last record need not be a ride."""
    catch_up(total)  # type: ignore[arg-type]
    return world.standing()[1] == world.truth[1]


def test_a_strangers_rating_is_not_counted(world: World) -> None:
    reader = stars(world)
    data = '{"id": 1, "ride_id": 1, "stars": 5}'
    world.log().redis.xadd(world.stream, named(1, data, 0, "f" * 16, "rating.create"))
    assert is_exact(world, reader)
    assert (reader.handler.ratings, world.value("SELECT entries_ignored FROM checkpoints")) == (
        0,
        1,
    )


def test_a_repair_of_the_log_has_the_ratings_counted_anew(world: World) -> None:
    world.take(1)
    rate(world, _1=5)
    drain(world.streamer())
    reader = stars(world)
    assert is_exact(world, reader)
    world.connection.execute("UPDATE rating_sums SET stars = 50")
    stranded(world)
    assert "ratings ratings0" in repair(world.connect())[1]
    assert is_exact(world, reader)
    assert world.value("SELECT count(*) FROM checkpoints WHERE recount") == 0


def test_a_sum_that_was_deleted_is_said_and_nothing_is_counted(world: World) -> None:
    stars(world)
    world.connection.execute("DELETE FROM rating_sums")
    without = f"ratings0 has a checkpoint, at position {world.start}, but no sum"
    with pytest.raises(Unavailable, match=without):
        stars(world)
