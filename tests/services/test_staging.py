"""Staging: what stage() refuses, the rights that it needs, and what it locks."""

import psycopg
import pytest

from tests.support.engine import TAKE_BY_PSYCOPG
from tests.support.world import World
from unified_log.tracing import NO_TRACE

STAGE = "SELECT stage(%s, 'ride.create', '{}')"
ORDERS = """
    CREATE TABLE orders (
        position bigint PRIMARY KEY DEFAULT nextval('log_position'),
        created_at timestamptz NOT NULL DEFAULT now(), amount int UNIQUE
    );
    SELECT attach('orders', 'position', 'order.create', 'to_jsonb(amount)', stages => true)
"""
STAGED = "SELECT type, data FROM staged_log_records ORDER BY id"
CLERK = """
    CREATE ROLE clerk;
    GRANT INSERT (distance), SELECT (id) ON rides TO clerk;
    GRANT USAGE ON SEQUENCE log_position TO clerk;
    GRANT CREATE ON SCHEMA public TO clerk
"""
PLACE = "WITH ride AS (INSERT INTO rides (distance) VALUES (1) RETURNING id) "
# What stage() names, as somebody else may name things.
MISLEADING = """
    CREATE TEMP TABLE staged_log_records (LIKE public.staged_log_records);
    CREATE TEMP SEQUENCE log_position; CREATE TEMP SEQUENCE doorbell;
    CREATE SCHEMA evil;
    CREATE FUNCTION evil.pg_sequence_last_value(regclass) RETURNS bigint RETURN 1000000;
    CREATE FUNCTION evil.gt(bigint, bigint) RETURNS boolean RETURN true;
    CREATE OPERATOR evil.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.gt);
    SET LOCAL search_path = pg_temp, evil, pg_catalog
"""
PREDICATE_LOCKS = """
    SELECT DISTINCT relation::regclass::text FROM pg_locks
    WHERE mode = 'SIReadLock' AND pid = pg_backend_pid()
"""


def run(connection: psycopg.Connection, statements: str) -> None:
    connection.execute(statements.encode(), prepare=False)


@pytest.mark.proves("drawn")
def test_a_position_that_nobody_has_drawn_is_refused(world: World) -> None:
    drawn = world.value("SELECT nextval('log_position')")
    for position in (None, drawn - 1_000_000, drawn + 1, drawn + 10**15):
        with pytest.raises(psycopg.errors.CheckViolation) as refused:
            world.connection.execute(STAGE, [position])
        said = "null" if position is None else str(position)
        assert refused.value.diag.message_primary == (
            f"position {said} was not drawn from the sequence log_position"
        )
    world.connection.execute(STAGE, [drawn])
    with pytest.raises(psycopg.errors.UniqueViolation):
        world.connection.execute(STAGE, [drawn])


def test_nothing_is_staged_before_the_first_position_is_drawn(world: World) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match=r"position \d+ was not drawn"):
        world.connection.execute("SELECT stage(cell_start() + 1, 'ride.create', '{}')")


def test_whoever_stages_needs_a_right_to_the_function_and_to_nothing_else(world: World) -> None:
    staging = PLACE + "SELECT stage(id, 'ride.create', to_jsonb(id)) FROM ride"
    with world.connection.transaction(force_rollback=True):
        run(world.connection, CLERK)
        run(world.connection, "SET LOCAL ROLE clerk")
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="function stage"),
            world.connection.transaction(),
        ):
            run(world.connection, staging)
        run(world.connection, "RESET ROLE; GRANT EXECUTE ON FUNCTION stage TO clerk")
        run(world.connection, "SET LOCAL ROLE clerk")
        run(world.connection, staging)
        run(world.connection, "RESET ROLE")
        assert world.staged() == 1


def test_with_a_trigger_whoever_inserts_needs_not_even_that(world: World) -> None:
    with world.connection.transaction(force_rollback=True):
        run(world.connection, ORDERS)
        run(world.connection, CLERK)
        run(world.connection, "GRANT INSERT (amount) ON orders TO clerk; SET LOCAL ROLE clerk")
        run(world.connection, "INSERT INTO orders (amount) VALUES (7)")
        mine = "CREATE TABLE mine (position bigint, amount int)"
        trigger = "CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION {}()"
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"stage order\.create"),
            world.connection.transaction(),
        ):
            run(world.connection, mine + ";" + trigger.format('"stage order.create"'))
        run(world.connection, "RESET ROLE")
        assert world.connection.execute(STAGED).fetchall() == [("order.create", 7)]


def test_no_search_path_and_no_temporary_table_misleads_either(world: World) -> None:
    with world.connection.transaction(force_rollback=True):
        run(world.connection, ORDERS)
        run(world.connection, MISLEADING)
        run(world.connection, "INSERT INTO public.orders (amount) VALUES (7)")
        with (
            pytest.raises(psycopg.errors.CheckViolation, match="position 99 was not drawn"),
            world.connection.transaction(),
        ):
            run(world.connection, "SELECT public.stage(99, 'order.create', '8')")
        run(world.connection, "SET LOCAL search_path = public")
        staged = STAGED.replace("FROM ", "FROM public.")
        assert world.connection.execute(staged).fetchall() == [("order.create", 7)]


def test_a_trigger_stages_each_row_that_comes_in_however_it_comes(world: World) -> None:
    run(world.connection, ORDERS)
    run(world.connection, "INSERT INTO orders (amount) VALUES (1), (2)")
    run(world.connection, "INSERT INTO orders (amount) VALUES (2), (3) ON CONFLICT DO NOTHING")
    with world.connection.cursor().copy("COPY orders (amount) FROM STDIN") as copy:
        copy.write_row([4])
    assert [data for _, data in world.connection.execute(STAGED)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "take", [TAKE_BY_PSYCOPG, "INSERT INTO orders (amount) VALUES (8) RETURNING 1"]
)
def test_staging_takes_no_predicate_lock_on_what_others_write(world: World, take: str) -> None:
    """So no writer's commit fails on account of another's under SERIALIZABLE."""
    run(world.connection, ORDERS)
    values = ["1", *NO_TRACE] if take == TAKE_BY_PSYCOPG else []
    connection = world.connect()
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        connection.execute(take.encode(), values)
        locked = {relation for (relation,) in connection.execute(PREDICATE_LOCKS)}
    assert locked <= {"pg_locks"}
    assert world.staged() == 1
