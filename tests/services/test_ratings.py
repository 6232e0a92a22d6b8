"""Ratings, the second kind of record: taken over HTTP once for each ride, and counted exactly."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

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


@pytest.mark.parametrize("given", [{"data": {"stars": "4"}}, {"json": {"stars": 4, "why": [1]}}])
def test_a_ride_is_rated_once_and_the_same_again_changes_nothing(
    api: Api, world: World, given: dict[str, object]
) -> None:
    [ride] = world.take(5)
    answers = [api.client.post(f"/rides/{ride}/rating", **given) for _ in range(2)]  # type: ignore[arg-type]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert [answer.json() for answer in answers] == [{"rating": {"ride_id": ride, "stars": 4}}] * 2
    other = api.client.post(f"/rides/{ride}/rating", data={"stars": "5"})
    assert is_problem(other, 409)
    assert other.json()["detail"] == f"ride {ride} was already rated: 4 of 5 stars"
    assert world.connection.execute(SUMS).fetchone() == (1, 4)
    assert world.staged() == 2


@pytest.mark.proves("rated-once")
def test_of_twenty_requests_at_once_one_rates_the_ride(world: World) -> None:
    api = Api(world, API_WORKERS="2")  # they meet in the database, too
    [ride] = world.take(5)
    with ThreadPoolExecutor(20) as threads:
        post = lambda _: api.client.post(f"/rides/{ride}/rating", data={"stars": "3"})  # noqa: E731
        statuses = sorted(answer.status_code for answer in threads.map(post, range(20)))
    assert statuses == [200] * 19 + [201]
    assert (world.value("SELECT count(*) FROM ratings"), world.staged()) == (1, 2)


def test_a_lock_on_the_rides_makes_a_503_that_says_that_nothing_was_taken(
    api: Api, world: World
) -> None:
    [ride] = world.take(5)
    with transaction(world) as holding:
        holding.execute("LOCK TABLE rides IN ACCESS EXCLUSIVE MODE")
        answer = api.client.post(f"/rides/{ride}/rating", data={"stars": "3"})
    assert is_problem(answer, 503, "/openapi.json#rating-not-taken")


def test_another_request_that_is_rating_the_ride_may_succeed(api: Api, world: World) -> None:
    [ride] = world.take(5)
    with transaction(world) as holding:
        holding.execute(RATE, [ride, 3])
        answer = api.client.post(f"/rides/{ride}/rating", data={"stars": "3"})
    assert is_problem(answer, 503, "/openapi.json#rating-maybe-taken")


@pytest.fixture(scope="module")
def refusing(module_world: World) -> Iterator[Api]:
    """One API for all refusals, with one ride that nobody rates."""
    module_world.take(5)
    api = Api(module_world)
    yield api
    api.client.close()
    assert module_world.connection.execute(SUMS).fetchone() == (0, 0)
    assert module_world.staged() == 1


@pytest.mark.parametrize("ride", [2, 2**63 - 1, 2**63, 10**30])
def test_a_ride_that_is_not_there_is_not_rated(refusing: Api, ride: int) -> None:
    assert is_problem(refusing.client.post(f"/rides/{ride}/rating", data={"stars": "3"}), 404)


@pytest.mark.parametrize("stars", ["0", "6", "-1", "4.5", "04", "1e0", " 4", "", "four", "٤"])
def test_other_stars_are_refused(refusing: Api, stars: str) -> None:
    assert is_problem(refusing.client.post("/rides/1/rating", data={"stars": stars}), 422)


@pytest.mark.parametrize(
    "content", ['{"stars": true}', '{"stars": "4"}', '{"stars": null}', '{"stars": [4]}', "{}",
                '{"stars": 4, "stars": 4}', "[4]"],
)  # fmt: skip
def test_json_that_is_no_stars_is_refused(refusing: Api, content: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = refusing.client.post("/rides/1/rating", content=content, headers=headers)
    assert is_problem(answer, 422)


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
