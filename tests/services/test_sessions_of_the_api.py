"""The API's sessions with Postgres: who waits for one, how long, and when one is replaced."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from decimal import Decimal
from threading import Barrier

import pytest
from psycopg import IsolationLevel
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from api import booking
from api.database import ALL_IN_USE, Database, NoConnection
from api.readiness import require_readiness
from api.writing import TryLater
from tests.support.engine import all_shown, opened
from tests.support.roles import as_role
from tests.support.world import PATIENCE, World, catch_up, transaction

PID = text("SELECT pg_backend_pid()")
RATE = "INSERT INTO ratings (ride_id, stars) SELECT id, 5 FROM rides WHERE id = %s"


def pids(database: Database, number: int) -> set[int]:
    """Of so many sessions in use at once."""
    with ExitStack() as exits:
        held = [exits.enter_context(database.connect()) for _ in range(number)]
        return {connection.execute(PID).scalar_one() for connection in held}


def test_whoever_finds_all_sessions_in_use_waits_to_its_deadline_and_no_longer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.database.PATIENCE", 10_000)  # whoever waited for this would not end
    with opened(world, api_connections=1) as database, database.connect():
        deadline = time.monotonic() + 0.1
        with pytest.raises(NoConnection, match=ALL_IN_USE), database.connect(deadline):
            pass
        assert time.monotonic() >= deadline


def test_where_the_server_takes_no_more_sessions_a_request_waits_for_one_of_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where its role's limit is below API_CONNECTIONS: nobody is refused."""
    monkeypatch.setattr("api.database.PATIENCE", PATIENCE)
    limit = "CONNECTION LIMIT 2"
    with as_role(world, options=limit) as few, opened(few, api_connections=8) as database:
        together = Barrier(8)

        def ask(_: int) -> int:
            together.wait()
            with database.connect() as connection:
                connection.execute(text("SELECT pg_sleep(0.05)"))
                return int(connection.execute(PID).scalar_one())

        with ThreadPoolExecutor(8) as threads:
            assert len({*threads.map(ask, range(8))}) <= 2


def test_a_session_that_is_lost_costs_the_others_nothing(world: World) -> None:
    with opened(world, api_connections=4) as database:
        before = pids(database, 4)
        with pytest.raises(DBAPIError), database.connect() as connection:
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        assert len(before & pids(database, 4)) == 3


def test_a_session_of_a_server_that_has_become_read_only_is_not_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a fail-over: a new session may lead to another server."""
    monkeypatch.setattr("api.database.NEW", 0)
    name = world.connection.info.dbname
    world.connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with opened(world, api_connections=1) as database:
        with pytest.raises(TryLater, match="read-only"):
            booking.take(database, Decimal(5), None)
        world.connection.execute("SET default_transaction_read_only = off")
        world.connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        assert booking.take(database, Decimal(5), None).distance == 5


def test_where_all_sessions_are_read_only_not_each_request_opens_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.database.NEW", 1000)
    name = world.connection.info.dbname
    world.connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with opened(world, api_connections=1) as database:
        before = pids(database, 1)
        with pytest.raises(TryLater, match="read-only"):
            booking.take(database, Decimal(5), None)
        assert pids(database, 1) == before


def test_what_is_refused_again_and_again_leaves_nothing_on_the_server(world: World) -> None:
    """psycopg forgets a statement that failed when it was prepared, and would prepare it again."""
    world.connection.execute("ALTER TABLE rides ADD CHECK (distance < 10)")
    with opened(world, api_connections=1) as database:
        for distance in (11, 11, 5, 11, 5, 5, 11, 11):
            with suppress(TryLater):
                booking.take(database, Decimal(distance), None)
        with database.connect() as connection:
            prepared = text("SELECT count(*) FROM pg_prepared_statements")
            assert connection.execute(prepared).scalar_one() <= 1


def test_sessions_that_are_gone_hide_none_that_is_alive(world: World) -> None:
    """Where the server takes no new one: three of four were lost, and nobody is refused."""
    with as_role(world) as few, opened(few, api_connections=4) as database:
        *lost, alive = pids(database, 4)
        world.connection.execute(f"ALTER ROLE {few.stream}_role CONNECTION LIMIT 0")
        end = "SELECT pg_terminate_backend(pid, 30000) FROM unnest(%s) pid"  # and wait for it
        world.connection.execute(end, [lost])
        for _ in range(8):
            assert pids(database, 1) == {alive}


def test_a_statement_whose_columns_have_other_types_now_fails_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.database.NEW", 0)
    world.connection.execute("CREATE TABLE other (one int)")
    with opened(world, api_connections=1) as database:
        for _ in range(2):
            with database.connect() as connection:
                connection.execute(text("SELECT * FROM other"))
        world.connection.execute("ALTER TABLE other ALTER COLUMN one TYPE text")
        with pytest.raises(DBAPIError, match="cached plan"), database.connect() as connection:
            connection.execute(text("SELECT * FROM other"))
        with database.connect() as connection:
            connection.execute(text("SELECT * FROM other"))


def test_a_key_is_found_again_when_its_columns_have_other_types(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.database.NEW", 0)
    with opened(world, api_connections=1) as database:
        taken = [booking.take(database, Decimal(5), "key").id for _ in range(4)]
        world.connection.execute("ALTER TABLE idempotency_keys ALTER distance TYPE numeric(13, 4)")
        with pytest.raises(TryLater, match="cached plan"):
            booking.take(database, Decimal(5), "key")
        taken.append(booking.take(database, Decimal(5), "key").id)
    assert len({*taken}) == 1


def readiness(world: World) -> None:
    with opened(world) as database, database.connect() as connection:
        require_readiness(connection)


@pytest.mark.parametrize("look", [all_shown, readiness])
def test_who_looks_at_all_records_has_no_conflict_with_who_writes(
    world: World, look: Callable[[World], object]
) -> None:
    """Not even with one that is about to commit, and has read what another has changed since."""
    [ride] = world.send(1)
    catch_up(world.consumer())
    with transaction(world) as rating, transaction(world) as other:
        for each in (rating, other):
            each.isolation_level = IsolationLevel.SERIALIZABLE
        rating.tpc_begin(world.stream)
        rating.execute(RATE, [ride])
        other.execute("INSERT INTO rides (distance) VALUES (2)")
        other.commit()
        rating.execute("INSERT INTO rides (distance) VALUES (3)")
        rating.tpc_prepare()
        try:
            look(world)
        finally:
            rating.tpc_rollback()


def test_rides_can_be_taken_while_somebody_locks_another_kinds_table(world: World) -> None:
    """Such as VACUUM FULL; no balancer is told otherwise."""
    world.send(1)
    with transaction(world) as holder:
        holder.execute("LOCK TABLE ratings IN ACCESS EXCLUSIVE MODE")
        readiness(world)
