"""Taking rides over real HTTP: one transaction, one ride a key, also when the database is lost."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from api.database import PATIENCE, SESSION, UNREACHABLE, driver
from tests.support.api import KEY_REUSED, MAYBE_TAKEN, NOT_TAKEN, Api, is_problem
from tests.support.disasters import trigger
from tests.support.engine import opened
from tests.support.world import World, eventually, transaction

END_SESSION = "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10);"


@pytest.fixture
def world(module_world: World) -> World:
    return module_world


@pytest.fixture(scope="module")
def live(module_world: World) -> Iterator[Api]:
    api = Api(module_world)
    yield api
    api.client.close()


@pytest.fixture
def api(live: Api, world: World) -> Api:
    """One for all tests."""
    return live.emptied(world, "refuse", "conflict", "vanish", "falter")


def test_one_key_takes_one_ride_however_often_it_is_sent(api: Api, world: World) -> None:
    first, again = (api.post("5.0", **{"Idempotency-Key": "once"}) for _ in range(2))
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    same = ("location", "content-type")
    assert (
        (again.status_code, again.content)
        == (first.status_code, first.content)
        == (201, first.content)
    )
    assert [again.headers[name] for name in same] == [first.headers[name] for name in same]
    assert api.post("5.0001", **{"Idempotency-Key": "once"}).status_code == 201  # the same ride
    assert is_problem(api.post("6", **{"Idempotency-Key": "once"}), 422, KEY_REUSED)
    assert world.truth == (world.start + 1, 5)


@pytest.mark.proves("staging-is-atomic")
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}], ids=["no key", "a key"])
def test_a_ride_whose_record_cannot_be_staged_is_not_taken(
    api: Api, world: World, headers: dict[str, str]
) -> None:
    trigger(world, "refuse", "BEFORE INSERT ON staged_log_records", "RAISE 'no more records';")
    assert api.post("5", **headers).status_code >= 500
    for table in ("rides", "staged_log_records", "idempotency_keys"):
        assert world.value(f"SELECT count(*) FROM {table}") == 0, table
    world.connection.execute("DROP TRIGGER refuse ON staged_log_records")
    assert api.post("5", **headers).status_code == 201
    assert world.staged() == 1


def test_twenty_equal_requests_at_once_take_one_ride(world: World) -> None:
    api = Api(world, API_WORKERS="2").emptied(world)  # they meet in the database, too
    for key in ("a", "b", "c"):
        with ThreadPoolExecutor(20) as threads:
            answers = list(
                threads.map(lambda _, k=key: api.post("5", **{"Idempotency-Key": k}), range(20))
            )
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.text for answer in answers}) == 1
        replayed = [answer for answer in answers if "idempotent-replayed" in answer.headers]
        assert len(replayed) == 19
    assert world.value("SELECT count(*) FROM rides") == 3
    assert world.staged() == 3


def test_serialization_failures_and_deadlocks_are_tried_again(api: Api, world: World) -> None:
    """A trigger fails the first three transactions of each ride, as both would."""
    world.connection.execute("CREATE SEQUENCE attempts")
    fail = (
        "IF nextval('attempts') % 4 = 0 THEN RETURN NEW; END IF;"
        " IF currval('attempts') % 2 = 0 THEN RAISE SQLSTATE '40001'; END IF;"
        " RAISE SQLSTATE '40P01';"
    )
    trigger(world, "conflict", "BEFORE INSERT ON staged_log_records", fail)
    assert api.post("5").status_code == 201
    assert api.post("6", **{"Idempotency-Key": "k"}).status_code == 201
    assert world.value("SELECT last_value FROM attempts") == 8
    assert world.truth[1] == 11

    for start in (9, 10):  # now every one fails, in either way
        world.connection.execute(f"ALTER SEQUENCE attempts INCREMENT 4 RESTART {start}")
        hopeless = api.post("7")
        assert is_problem(hopeless, 503, NOT_TAKEN)
        assert "not taken" in hopeless.json()["detail"]
        assert hopeless.headers["retry-after"]


def lose_connections_at_commit(world: World) -> None:
    """Make every ride's session end while it commits."""
    at_commit = "AFTER INSERT ON rides DEFERRABLE INITIALLY DEFERRED"
    trigger(world, "vanish", at_commit, f"{END_SESSION} RETURN NEW;")


def test_a_connection_lost_at_commit_is_told_and_not_tried_again(api: Api, world: World) -> None:
    lose_connections_at_commit(world)
    before = world.value("SELECT last_value FROM log_position")
    answer = api.post("5")
    assert is_problem(answer, 503, MAYBE_TAKEN)
    assert "may have been taken" in answer.json()["detail"]
    assert world.value("SELECT last_value FROM log_position") - before <= 1


def test_with_a_key_a_lost_connection_is_tried_again(api: Api, world: World) -> None:
    lose_connections_at_commit(world)
    answer = api.post("5", **{"Idempotency-Key": "k"})
    assert is_problem(answer, 503, MAYBE_TAKEN)
    assert world.value("SELECT last_value FROM log_position") > 1
    world.connection.execute("DROP TRIGGER vanish ON rides")
    assert api.post("5", **{"Idempotency-Key": "k"}).status_code == 201
    assert world.truth[1] == 5


def status(api: Api) -> int:
    """Of the answer to a ride, once there was a session for it: a new one may take too long."""

    def found() -> int | None:
        answer = api.post("5")
        too_early = answer.status_code == 503 and answer.json()["type"] == NOT_TAKEN
        return None if too_early else answer.status_code

    return eventually(found, "a session")


def test_with_the_database_down_it_answers_503_and_recovers(api: Api, world: World) -> None:
    assert api.ready()
    world.postgres.stop()
    try:
        for headers in ({}, {"Idempotency-Key": "k"}):
            answer = api.post("5", **headers)
            assert is_problem(answer, 503, NOT_TAKEN)
            assert answer.json()["detail"] == f"{UNREACHABLE}; the ride was not taken"
        for path in ("/consumers", "/readyz"):
            answer = api.client.get(path)
            assert is_problem(answer, 503)
            assert answer.json()["detail"] == UNREACHABLE
        assert api.client.get("/healthz").status_code == 200
    finally:
        world.postgres.start()
    eventually(api.ready)
    assert {status(api) for _ in range(20)} == {201}


def test_a_database_that_dies_during_a_commit_and_stays_away_may_have_the_ride(
    api: Api, world: World
) -> None:
    """With a key it is tried again; that this finds no server says nothing of the first attempt."""
    post = partial(api.post, "5", **{"Idempotency-Key": "k"})
    blocker = world.connect()
    blocker.execute("BEGIN")
    blocker.execute("LOCK TABLE rides IN SHARE MODE")
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(post)
        eventually(lambda: world.waiting == 1)
        world.postgres.kill()
        try:
            assert is_problem(answer.result(), 503, MAYBE_TAKEN)
        finally:
            world.postgres.start()
    eventually(api.ready)
    assert post().status_code == 201


def test_stale_connections_are_replaced_before_a_ride_needs_them(api: Api, world: World) -> None:
    """At least once in three times: on a busy machine a new connection may take too long."""

    def all_are_taken() -> bool:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: api.post(), range(50)))
        world.postgres.kill()
        world.postgres.start()
        return {api.post().status_code for _ in range(50)} == {201}

    assert any(all_are_taken() for _ in range(3))


def test_the_pools_sessions_are_serializable_and_never_hang(world: World) -> None:
    """A ride is one statement outside of a transaction block, so the session's level is its own."""
    with opened(world) as database, database.connect() as connection:
        assert driver(connection).autocommit
        for name, wanted in SESSION.items():
            assert connection.exec_driver_sql(f"SHOW {name}").scalar() == wanted
    assert SESSION["default_transaction_isolation"] == "serializable"
    assert SESSION["idle_in_transaction_session_timeout"] == "2s"
    lock_timeout = int(SESSION["lock_timeout"].removesuffix("ms")) / 1000
    assert lock_timeout > 0
    assert PATIENCE + 2 * lock_timeout < 2  # for a connection, for the ride and for its key


def test_a_lock_on_the_rides_makes_503s_and_spoils_no_key(api: Api, world: World) -> None:
    under_keys = [partial(api.post, **{"Idempotency-Key": f"k{n}"}) for n in range(30)]
    with transaction(world) as blocker:
        blocker.execute("LOCK TABLE rides IN SHARE MODE")
        with ThreadPoolExecutor(30) as threads:
            answers = list(threads.map(lambda post: post(), under_keys))
    for answer in answers:
        assert is_problem(answer, 503, NOT_TAKEN)
        assert answer.headers["retry-after"]
        assert answer.json()["detail"].endswith("the ride was not taken")
        assert "\n" not in answer.json()["detail"]
    assert {post().status_code for post in under_keys} == {201}
    assert world.truth[1] == 30 * 5


@pytest.mark.parametrize("why", ["raise_exception", "lock_not_available"])
def test_a_retry_that_is_refused_does_not_deny_it_either(api: Api, world: World, why: str) -> None:
    world.connection.execute("DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries", prepare=False)
    refuse = f"RAISE 'no more rides' USING ERRCODE = '{why}';"
    falter = f"IF nextval('tries') = 1 THEN {END_SESSION} END IF; {refuse}"
    trigger(world, "falter", "BEFORE INSERT ON rides", falter)
    answer = api.post("5", **{"Idempotency-Key": "k"})
    assert is_problem(answer, 503, MAYBE_TAKEN)
    assert "no more rides" in answer.json()["detail"]
