"""Attaching a kind: at once with others, to rows that are there, in any schema, by any owner."""

from pathlib import Path
from threading import Thread

import psycopg
import pytest

from demo.embedded.servers import Postgres, Redis
from tests.support.clusters import fresh_world
from tests.support.world import World, drain, eventually, transaction
from unified_log import schema
from unified_log.database import one_row

TABLE = """
    CREATE TABLE {0} (
        key uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        position bigint NOT NULL UNIQUE DEFAULT nextval('log_position'),
        created_at timestamptz NOT NULL DEFAULT now(), amount int
    );
"""
ATTACH = "SELECT attach('{0}', 'position', '{0}.create', $$jsonb_build_object('amount', amount)$$)"
DETACH = "SELECT detach('ride.create')"
BEFORE = """
    CREATE TABLE orders (amount int, created_at timestamptz NOT NULL DEFAULT now());
    INSERT INTO orders SELECT generate_series(1, 3);
"""
POSITION = """
    ALTER TABLE orders ADD position bigint NOT NULL UNIQUE DEFAULT nextval('log_position');
"""
VIRTUAL = " GENERATED ALWAYS AS (2 * amount) VIRTUAL"
WAITING = """
    SELECT count(*) FROM pg_locks WHERE relation = 'log_kinds'::regclass AND NOT granted
"""
DRAWN_BEFORE = "which this transaction has not drawn: draw new ones in it, as in UPDATE orders SET"
OF_ORDERS = "SELECT type, data FROM {} WHERE type = 'orders.create' ORDER BY id"


def run(world: World, *statements: str) -> None:
    """In one transaction."""
    world.connection.execute("; ".join(statements).encode(), prepare=False)


def refused(world: World, *statements: str) -> str:
    with pytest.raises(psycopg.errors.CheckViolation) as refusal:
        run(world, *statements)
    return str(refusal.value.diag.message_primary)


@pytest.mark.proves("kinds")
def test_two_that_are_attached_at_once_are_both_kinds(world: World) -> None:
    for table in ("orders", "parcels"):
        run(world, TABLE.format(table))
    with transaction(world) as first:
        first.execute(ATTACH.format("orders").encode())
        second = Thread(target=run, args=[world, ATTACH.format("parcels")])
        second.start()
        looking = world.connect()
        eventually(lambda: one_row(looking.execute(WAITING))[0], "one that waits")
        first.commit()
        second.join()
    for table in ("orders", "parcels"):
        run(world, f"INSERT INTO {table} (amount) VALUES (1)")
    assert world.value("SELECT count(DISTINCT type) FROM log_records") == 2


def test_a_snapshot_that_would_not_show_what_others_attach_is_refused(world: World) -> None:
    run(world, TABLE.format("orders"))
    for level in ("REPEATABLE READ", "SERIALIZABLE"):
        begin = f"BEGIN ISOLATION LEVEL {level}"
        for attach, name in ((ATTACH.format("orders"), "attach"), (DETACH, "detach")):
            assert f"{name}() needs READ COMMITTED" in refused(world, begin, attach)
            world.connection.rollback()


def test_rows_that_are_there_are_staged_under_positions_that_are_drawn_with_them(
    world: World,
) -> None:
    world.send(1)
    run(world, BEFORE)
    run(world, "BEGIN", "SAVEPOINT one", POSITION, "RELEASE one", ATTACH.format("orders"), "COMMIT")
    staged = world.connection.execute(OF_ORDERS.format("staged_log_records")).fetchall()
    assert staged == [("orders.create", {"amount": amount}) for amount in (1, 2, 3)]
    assert staged == world.connection.execute(OF_ORDERS.format("log_records")).fetchall()
    drain(world.streamer())
    assert [record.type for record in world.records()] == [b"ride.create", *3 * [b"orders.create"]]


@pytest.mark.parametrize(
    "positions",
    [
        [BEFORE + POSITION],
        [BEFORE + POSITION, "UPDATE orders SET position = 1000 + position"],
        [BEFORE + POSITION, "UPDATE orders SET position = position - 10"],
    ],
)
def test_rows_with_positions_that_the_log_may_have_passed_are_refused(
    world: World, positions: list[str]
) -> None:
    run(world, positions[0])
    said = refused(world, *positions[1:], ATTACH.format("orders"))
    assert "the log may have passed the positions of 3 rows of orders" in said
    assert DRAWN_BEFORE in said
    advice = said[said.index("UPDATE") :]
    run(world, advice, ATTACH.format("orders"))
    drain(world.streamer())
    assert len(world.records()) == 3


def test_rows_of_a_transaction_that_began_later_are_not_our_own(world: World) -> None:
    run(world, TABLE.format("orders"))
    with transaction(world) as attaching:
        attaching.execute("SELECT pg_current_xact_id()")
        run(world, "INSERT INTO orders (amount) VALUES (1)")
        with pytest.raises(psycopg.errors.CheckViolation, match="has not drawn"):
            attaching.execute(ATTACH.format("orders").encode())


def test_names_mean_what_they_meant_to_whoever_attached(world: World) -> None:
    """Whatever the search_path is of those who attach later, stage, or read."""
    run(
        world,
        "CREATE SCHEMA shop",
        "CREATE FUNCTION shop.told(int) RETURNS jsonb IMMUTABLE RETURN to_jsonb($1)",
        TABLE.format("shop.orders"),
        "SET LOCAL search_path = shop",
        "SELECT public.attach('orders', 'position', 'order.create', 'told(amount)', true)",
    )
    run(world, TABLE.format("parcels"), ATTACH.format("parcels"))
    run(world, "SET search_path = ''", "INSERT INTO shop.orders (amount) VALUES (7)")
    told = "SELECT data FROM public.{} WHERE type = 'order.create'"
    for place in ("staged_log_records", "log_records"):
        assert world.connection.execute(told.format(place)).fetchall() == [(7,)]


def test_an_owner_who_is_no_superuser_attaches_and_nobody_else_does(
    postgres: Postgres, redis: Redis, tmp_path: Path
) -> None:
    """In a schema of its own, which also becomes the log's."""
    with (
        fresh_world(postgres, redis, tmp_path, {}) as world,
        world.connection.transaction(force_rollback=True),
    ):
        run(
            world, "CREATE ROLE owner", "CREATE ROLE other", "CREATE SCHEMA log AUTHORIZATION owner"
        )
        run(world, "SET LOCAL ROLE owner", "SET LOCAL search_path = log, elsewhere")
        schema.apply(world.connection)
        run(world, TABLE.format("orders"), ATTACH.format("orders"))
        assert one_row(world.connection.execute("SHOW search_path")) == ("log, elsewhere",)
        run(world, "GRANT USAGE ON SCHEMA log TO other", "SET LOCAL ROLE other")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="function attach"):
            run(world, ATTACH.format("orders"))


def test_only_a_kind_without_rows_is_taken_away(world: World) -> None:
    attached = ATTACH.format("orders").replace("$$)", "$$, true)")
    run(world, TABLE.format("orders"), attached)
    run(world, "SELECT detach('orders.create')")
    run(world, "INSERT INTO orders (amount) VALUES (1)")
    assert world.value("SELECT count(*) FROM log_records") == world.staged() == 0
    run(world, "UPDATE orders SET position = DEFAULT", attached)
    assert world.value("SELECT count(*) FROM log_records") == world.staged() == 1
    kept = "'orders.create' has rows, from which readers heal: it stays"
    assert refused(world, "SELECT detach('orders.create')") == kept
    assert refused(world, "SELECT detach('nothing')") == "there is no kind 'nothing'"


def test_a_kind_whose_table_was_dropped_is_taken_away(world: World) -> None:
    attached = ATTACH.format("orders").replace("$$)", "$$, true)")
    with world.connection.transaction(force_rollback=True):
        for table in ("orders", "parcels"):
            run(world, TABLE.format(table), attached.replace("orders", table))
        run(world, "DROP TABLE orders, parcels CASCADE")
        run(world, "SELECT detach('orders.create')", "SELECT detach('parcels.create')")
        assert world.value("SELECT count(*) FROM log_records") == 0
        run(world, TABLE.format("orders"), attached, "INSERT INTO orders (amount) VALUES (1)")
        assert world.value("SELECT count(*) FROM log_records") == world.staged() == 1


def test_a_trigger_that_would_miss_a_column_is_refused(world: World) -> None:
    if world.connection.info.server_version < 180_000:
        pytest.skip("before 18 there are no virtual columns")
    run(world, TABLE.format("orders"), "ALTER TABLE orders ADD twice int" + VIRTUAL)
    said = refused(world, ATTACH.format("orders").replace("$$)", "$$, stages => true)"))
    assert "a trigger can't see the virtual columns of orders" in said
    run(world, ATTACH.format("orders"))


def test_a_view_without_any_kind_has_no_records(world: World) -> None:
    run(world, "SELECT detach('ride.create')", "SELECT detach('rating.create')")
    assert world.value("SELECT count(*) FROM log_records") == 0
    precise = TABLE.format("orders").replace("timestamptz", "timestamptz(3)")
    run(world, precise, ATTACH.format("orders"), "INSERT INTO orders (amount) VALUES (1)")
    assert world.value("SELECT count(*) FROM log_records") == 1


def test_a_column_that_got_another_name_is_told(world: World) -> None:
    run(world, TABLE.format("orders"), ATTACH.format("orders"))
    run(world, "ALTER TABLE orders RENAME position TO place", TABLE.format("parcels"))
    said = refused(world, ATTACH.format("parcels"))
    assert "a table of a kind was changed: tell log_kinds the new names first" in said
    rename = "UPDATE log_kinds SET position_column = 'place' WHERE type = 'orders.create'"
    run(world, rename, ATTACH.format("parcels"))


def test_what_would_sort_all_records_for_the_newest_is_refused(world: World) -> None:
    """As it does where somebody has entered a kind by hand whose position is an integer."""
    run(
        world,
        "CREATE TABLE strange (id integer PRIMARY KEY, created_at timestamptz)",
        "INSERT INTO log_kinds VALUES ('a.b', 'strange', 'id', 'created_at', 'NULL', false)",
        TABLE.format("orders"),
    )
    said = refused(world, ATTACH.format("orders"))
    assert "looking up the newest record would need a " in said
