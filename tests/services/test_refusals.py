"""What the database refuses for an operator's fault: told to clients, to /readyz and to the log."""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from api.database import ALL_IN_USE, UNREACHABLE
from api.outages import PAUSE
from api.pruning import prune
from demo.embedded.servers import Postgres, Redis
from rocket_rides.settings import PROJECT
from tests.support.api import MAYBE_TAKEN, NOT_TAKEN, Api, is_problem
from tests.support.clusters import fresh_world
from tests.support.disasters import trigger
from tests.support.world import World, eventually, transaction
from unified_log.process import Stop
from unified_log.streamer.doorbell import Doorbell

SAYING_SO = "; the ride was not taken"
RIGHTS = (PROJECT / "migrations/rights.sql").read_text()
KEY = {"Idempotency-Key": "k"}
A_DAY = "from=2026-03-28T00:00:00Z&to=2026-03-29T00:00:00Z"
OLD_KEY = "INSERT INTO idempotency_keys VALUES ('old', 5, 1, now() - interval '31 days')"
KEYS = "SELECT count(*) FROM idempotency_keys"
DAYS = 30
# So that new ones begin with the database's defaults of now.
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"  # and wait for it
    " WHERE usename ^@ current_database()"
)
ARMED = "SELECT count(pg_sequence_last_value('doorbell'))"


def grant_what_is_needed(world: World, role: str) -> None:
    for right in re.findall(r"^GRANT [^;]*(?= TO api;)", RIGHTS, re.M):
        world.connection.execute(f"{right} TO {role}")


@pytest.fixture
def world(module_world: World) -> World:
    return module_world


@pytest.fixture(scope="module")
def role(module_world: World) -> Iterator[str]:
    """A role with the rights that rights.sql gives to the API, and no more."""
    role = f"{module_world.stream}_api"
    module_world.connection.execute(f"CREATE ROLE {role} LOGIN")
    yield role
    module_world.connection.execute(f"DROP OWNED BY {role} CASCADE")
    module_world.connection.execute(f"DROP ROLE {role}")


def as_role(world: World, role: str) -> dict[str, str]:
    url = world.postgres_url.replace("postgres@", f"{role}@")
    return {"DATABASE_URL": url}


@pytest.fixture(scope="module")
def live(module_world: World, role: str) -> Iterator[Api]:
    grant_what_is_needed(module_world, role)
    api = Api(module_world, **as_role(module_world, role))
    yield api
    api.client.close()


@pytest.fixture
def api(live: Api, world: World, role: str) -> Iterator[Api]:
    """One for all tests, with that role."""
    grant_what_is_needed(world, role)
    before = len(live.service.output.read_text())
    yield live.emptied(world)
    assert "Traceback" not in live.service.output.read_text()[before:]


def refuses_rides(api: Api, reason: str) -> bool:
    """Both with a key and without one, saying why, and that the ride was not taken."""
    for headers in ({}, KEY):
        answer = api.post("5", **headers)
        assert is_problem(answer, 503, NOT_TAKEN)
        assert answer.headers["retry-after"]
        assert reason in answer.json()["detail"]
        assert answer.json()["detail"].endswith(SAYING_SO)
    return True


def is_not_ready(api: Api, reason: str) -> bool:
    answer = api.client.get("/readyz")
    assert is_problem(answer, 503)
    assert reason in answer.json()["detail"], answer.text
    return True


def test_with_no_more_rights_than_it_needs_it_works(api: Api, world: World) -> None:
    assert api.ready()
    for headers in ({}, KEY):
        Doorbell(world.connect()).arm()
        assert api.post("5", **headers).status_code == 201
        assert world.value(ARMED) == 0  # the ride has rung
    ride = f"/rides/{world.start + 1}"
    asked = (ride, f"{ride}/receipt", "/consumers", f"/hours?{A_DAY}", f"/days?{A_DAY}", "/log")
    assert {path: api.client.get(path).status_code for path in asked} == dict.fromkeys(asked, 200)


def test_without_the_right_to_prune_old_keys_it_still_takes_rides(world: World, role: str) -> None:
    """And prunes them with no more than that right."""
    grant_what_is_needed(world, role)
    world.connection.execute(OLD_KEY)
    world.connection.execute(f"REVOKE DELETE ON idempotency_keys FROM {role}")
    api = Api(world, **as_role(world, role), LOG_LEVEL="DEBUG")
    api.service.says("can't prune idempotency keys: permission denied")
    assert api.ready()
    assert api.post("5", **KEY).status_code == 201
    assert api.service.stop() == 0
    grant_what_is_needed(world, role)
    with closing(world.connect()) as session:
        session.execute(f"SET ROLE {role}")
        assert prune(session, DAYS, Stop()) == 1
    api.client.close()


def test_a_right_that_is_missing_is_told(api: Api, world: World, role: str) -> None:
    for right, what, told in (
        ("SELECT", "table rides", "permission denied for table rides"),
        ("EXECUTE", "function stage", "EXECUTE on stage"),
    ):
        world.connection.execute(f"REVOKE {right} ON {what} FROM {role}")
        assert refuses_rides(api, f"permission denied for {what}")
        assert is_not_ready(api, told)
        grant_what_is_needed(world, role)
    assert world.truth == (world.start, 0)


def test_a_right_that_only_repeated_keys_need_is_told(api: Api, world: World, role: str) -> None:
    world.connection.execute(f"REVOKE SELECT ON idempotency_keys FROM {role}")
    assert api.post("5", **KEY).status_code == 201
    answer = api.post("5", **KEY)
    assert is_problem(answer, 503, MAYBE_TAKEN)  # by the first of these requests
    detail = "permission denied for table idempotency_keys; the ride may have been taken"
    assert answer.json()["detail"] == detail
    assert is_not_ready(api, "SELECT on idempotency_keys")
    assert world.truth == (world.start + 1, 5)


def test_an_outage_is_logged_once_and_again_when_it_changes_or_comes_back(
    api: Api, world: World, role: str
) -> None:
    before = len(api.service.output.read_text())

    def times(text: str) -> int:
        return api.service.output.read_text()[before:].count(text)

    def said(what: str) -> int:
        return times(f"POST /rides answers 503: permission denied for {what}")

    def revoke(right: str, what: str, told_before: int) -> None:
        world.connection.execute(f"REVOKE {right} ON {what} FROM {role}")
        eventually(lambda: api.post().status_code == 503 and said(what) > told_before)

    def restore() -> None:
        grant_what_is_needed(world, role)
        assert api.post().status_code == 201

    revoke("EXECUTE", "function stage", 0)
    threading.Event().wait(PAUSE)  # it may say more from now on, and has nothing to add
    assert {api.post().status_code for _ in range(20)} == {503}
    assert api.post("far").status_code == 422  # which says nothing of the database
    assert said("function stage") == 1
    revoke("INSERT", "table rides", 0)
    assert (said("table rides"), said("function stage")) == (1, 1)
    restore()
    revoke("EXECUTE", "function stage", 1)
    assert said("function stage") == 2
    restore()
    eventually(lambda: times("POST /rides works again") == 2)
    assert times("works again") == 2


def test_a_read_only_database_is_told(api: Api, world: World) -> None:
    alter = f"ALTER DATABASE {world.stream}"
    world.connection.execute(f"{alter} SET default_transaction_read_only = on")
    world.connection.execute(END_SESSIONS)
    try:
        assert refuses_rides(api, "the database is read-only")
        assert is_not_ready(api, "read-only")
        assert "GET /readyz" not in api.service.output.read_text()  # to be asked is no outage
        assert api.client.get("/consumers").status_code == 200
    finally:
        world.connection.execute(f"{alter} RESET default_transaction_read_only")
        world.connection.execute(END_SESSIONS)


def test_a_sequence_at_its_end_or_behind_the_rides_is_told(api: Api, world: World) -> None:
    last = world.value("SELECT max_value FROM pg_sequences WHERE sequencename = 'log_position'")
    world.connection.execute(f"ALTER SEQUENCE log_position MAXVALUE {world.start + 2}")
    assert [api.post().status_code for _ in range(2)] == [201, 201]
    assert refuses_rides(api, "reached maximum value of sequence")
    assert is_not_ready(api, "log_position has reached its end")
    assert world.truth == (world.start + 2, 10)
    world.connection.execute(f"ALTER SEQUENCE log_position MAXVALUE {last}")
    world.take(*range(1, 9))
    world.connection.execute("SELECT setval('log_position', cell_start() + 2)")
    assert is_not_ready(api, "log_position is behind the records")
    assert refuses_rides(api, "duplicate key")
    world.connection.execute(f"ALTER SEQUENCE log_position RESTART {world.start + 1000}")
    assert api.ready()
    assert api.post("5").json()["ride"]["id"] == world.start + 1000
    assert api.ready()


def test_a_fault_of_the_application_is_a_problem_too(live: Api, world: World) -> None:
    """A trigger swallows every ride: an INSERT that gives no row, which no code expects."""
    api = live.emptied(world)
    trigger(world, "swallow", "BEFORE INSERT ON rides", "RETURN NULL;")
    for headers in ({}, KEY):
        assert is_problem(api.post("5", **headers), 500)
    assert world.truth == (world.start, 0)
    world.connection.execute("DROP FUNCTION swallow CASCADE")
    assert api.post("5", **KEY).status_code == 201


def test_that_all_connections_are_in_use_is_not_told_as_an_outage(world: World) -> None:
    """With one connection, each of these requests waits for a lock: the third has none in time."""
    api = Api(world, API_CONNECTIONS="1")
    with transaction(world) as blocker, ThreadPoolExecutor(8) as clients:
        blocker.execute("LOCK TABLE rides")
        asked = [clients.submit(api.post) for _ in range(7)]
        asked.append(clients.submit(api.client.get, "/rides/1"))
        answers = [each.result() for each in asked]
    assert {answer.status_code for answer in answers} == {503}
    assert all(answer.headers["retry-after"] for answer in answers)
    details = {answer.json()["detail"] for answer in answers}
    assert f"{ALL_IN_USE}; the ride was not taken" in details
    assert not any(UNREACHABLE in detail for detail in details)
    assert api.post().status_code == 201
    api.client.close()


def test_a_database_without_the_schema_is_told_as_by_the_probe(
    postgres: Postgres, redis: Redis, tmp_path: Path
) -> None:
    with fresh_world(postgres, redis, tmp_path, {}) as world:
        api = Api(world)
        of_a_day = (f"/hours?{A_DAY}", f"/days?{A_DAY}")
        paths = ("/consumers", "/log", *of_a_day, "/rides/1", "/rides/1/receipt", "/readyz")
        answers = [api.client.get(path) for path in paths] + [api.post(), api.post(**KEY)]
        for answer in answers:
            assert answer.status_code == 503
            assert "run python -m migrations to upgrade it" in answer.json()["detail"]
        assert "Traceback" not in api.service.output.read_text()
        api.client.close()
