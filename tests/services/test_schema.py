"""The schema: migrations go up and down, match the models, and say what the code believes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, create_engine
from sqlalchemy.pool import NullPool

from migrations import config, downgrade, upgrade
from migrations.models import Base
from rocket_rides import database
from rocket_rides.errors import Unavailable
from tests.support.rollup import hurry, is_complete, lead
from tests.support.world import PATIENCE, World, catch_up, drain, eventually


def test_the_newest_revision_is_the_one_that_the_services_ask_for(world: World) -> None:
    assert ScriptDirectory.from_config(config("")).get_current_head() == database.REVISION
    database.require_current_schema(world.connection)


def test_the_migrations_build_what_the_models_say(world: World) -> None:
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(world.postgres_url),
        poolclass=NullPool,
    )
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, Base.metadata) == []


def test_the_checks_in_the_database_are_those_in_the_models(world: World) -> None:
    query = (
        "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text = %s"
    )
    for table in Base.metadata.sorted_tables:
        found = {row[0] for row in world.connection.execute(query, [table.name])}
        named = {c.name for c in table.constraints if isinstance(c, CheckConstraint)}
        assert found == named, table.name


def test_down_to_base_leaves_nothing_and_up_again_works(world: World) -> None:
    downgrade(world.postgres_url, "base")
    with pytest.raises(Unavailable, match="schema is empty"):
        database.require_current_schema(world.connection)
    tables = world.connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    ).fetchall()
    assert tables == [("alembic_version",)]
    assert world.value("SELECT count(*) FROM pg_sequences") == 0
    upgrade(world.postgres_url)
    database.require_current_schema(world.connection)


def test_an_upgrade_keeps_what_was_sent_and_mends_ids_that_redis_can_not_read(world: World) -> None:
    downgrade(world.postgres_url, "0002")
    world.connection.execute("UPDATE streamer_state SET last_sent = 5", prepare=False)
    world.connection.execute(
        "INSERT INTO checkpoints (name, last_redis_id, last_ride_id)"
        " VALUES ('good', '17-3', 4), ('bad', '99999999999999999999-1', 4)",
        prepare=False,
    )
    upgrade(world.postgres_url)
    assert world.value("SELECT last_sent_id FROM streamer_state") == 5
    found = world.connection.execute("SELECT name, last_redis_id FROM checkpoints ORDER BY name")
    assert found.fetchall() == [("bad", "0-0"), ("good", "17-3")]
    downgrade(world.postgres_url, "0002")
    assert world.value("SELECT last_sent FROM streamer_state") == 5
    upgrade(world.postgres_url)


def test_kinds_come_and_go_with_what_there_is(world: World) -> None:
    """Down again, a name is unique: the total keeps it; and what the rollup kept is gone."""
    world.take(5)
    drain(world.streamer())
    downgrade(world.postgres_url, "0003")
    world.connection.execute("INSERT INTO checkpoints (name, last_ride_id) VALUES ('a', 1)")
    world.connection.execute("INSERT INTO consumer_states (name, total_distance) VALUES ('a', 5)")
    world.connection.execute(RECONCILE % "1, 5, 1, 0, '{}'")
    world.connection.execute(RESET % "'a', 'applied', now(), 0, 0, 1, 5")
    world.connection.execute(
        "INSERT INTO dead_letters (consumer_name, redis_id, fields, reason)"
        " VALUES ('a', '1-0', '{}', 'not JSON')"
    )
    upgrade(world.postgres_url)
    hurry(lead(world))
    assert is_complete(world)
    world.connection.execute(
        "INSERT INTO checkpoints (kind, name) VALUES ('outside', 'a'), ('outside', 'b')"
    )
    assert catch_up(world.consumer("a")) == world.truth
    downgrade(world.postgres_url, "0003")
    found = world.connection.execute(
        "SELECT name, last_ride_id, total_distance FROM checkpoints"
        " LEFT JOIN consumer_states USING (name) ORDER BY name",
        prepare=False,
    )
    assert found.fetchall() == [("a", 1, 5), ("b", 0, None)]
    assert world.value("SELECT count(*) FROM dead_letters JOIN resets USING (consumer_name)") == 1
    upgrade(world.postgres_url)
    hurry(lead(world))
    assert is_complete(world)


def test_counts_begin_with_what_is_known_and_go_down_without_it(world: World) -> None:
    downgrade(world.postgres_url, "0005")
    world.take(5, 6, 7)
    world.connection.execute(
        "DELETE FROM staged_log_records WHERE id = 2; UPDATE streamer_state SET last_sent_id = 2;"
        "INSERT INTO checkpoints (kind, name)"
        " VALUES ('total', 'a'), ('total', 'b'), ('rollup', 'a')",
        prepare=False,
    )
    for kind, redis_id in (("total", "1-0"), ("total", "2-0"), ("rollup", "1-0"), ("gone", "1-0")):
        world.connection.execute(
            "INSERT INTO dead_letters (consumer_kind, consumer_name, redis_id, fields, reason)"
            " VALUES (%s, 'a', %s, '{}', 'not JSON')",
            [kind, redis_id],
        )
    for reset in ("'applied', now(), 0, 0, 1, 5", "'superseded', now(), NULL, NULL, NULL, NULL"):
        world.connection.execute(RECONCILE % "1, 5, 1, 0, '{}'")
        world.connection.execute(RESET % f"'b', {reset}")
    for ride, outcome in enumerate(("'delivered'", "'delivered'", "'dead'"), 1):
        dead_at = "now()" if outcome == "'dead'" else "NULL"
        row = RECEIPT % f"{outcome}, 1, now(), {dead_at}, NULL, NULL"
        world.connection.execute(row.replace("(1,", f"({ride},"))
    for _ in range(2):
        upgrade(world.postgres_url)
        counted = world.connection.execute(
            "SELECT kind, name, entries_set_aside, resets_applied, counted_at, gaps_healed"
            " + rides_healed + distance_healed + resends_skipped + crashes_injected"
            " FROM checkpoints ORDER BY kind, name",
            prepare=False,
        )
        assert counted.fetchall() == [
            ("rollup", "a", 1, 0, None, 0),
            ("total", "a", 2, 0, None, 0),
            ("total", "b", 0, 1, None, 0),
        ]
        assert world.value("SELECT records_sent FROM streamer_state") == 1  # ride 1 is stranded
        [worker] = world.connection.execute("SELECT * FROM receipts_workers", prepare=False)
        assert worker == ("", 2, 1, 0)
        downgrade(world.postgres_url, "0005")
    upgrade(world.postgres_url)


WAITS = """
    SELECT EXISTS (
        SELECT FROM pg_locks WHERE NOT granted
        AND relation IN ('checkpoints'::regclass, 'streamer_state'::regclass, 'receipts'::regclass)
    )
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("streamer_state", "checkpoints"),
        ("checkpoints", "streamer_state"),
        ("receipts", "streamer_state"),
        ("rollup_state", "checkpoints"),
    ],
)
def test_an_upgrade_lets_whoever_works_go_on(world: World, first: str, second: str) -> None:
    """In whatever order they lock; and it counts what they send meanwhile. Ride 1 is stranded."""
    downgrade(world.postgres_url, "0005")
    world.take(5, 6, 7)
    world.connection.execute("UPDATE streamer_state SET last_sent_id = 2", prepare=False)
    world.connection.execute("DELETE FROM staged_log_records WHERE id = 2")
    at_work, meanwhile = world.connect(), world.connect(statement_timeout="3s")
    with ThreadPoolExecutor(1) as threads:
        with at_work.transaction():
            at_work.execute(f"LOCK {first} IN ROW EXCLUSIVE MODE")
            upgrading = threads.submit(upgrade, world.postgres_url)
            if first != "rollup_state":  # which is left alone
                eventually(lambda: meanwhile.execute(WAITS).fetchone() == (True,))
            for table in (first, second):
                meanwhile.execute(f"SELECT FROM {table}", prepare=False)
            meanwhile.execute("DELETE FROM staged_log_records WHERE id = 3")
            meanwhile.execute("UPDATE streamer_state SET last_sent_id = 3", prepare=False)
            at_work.execute(f"LOCK {second} IN ROW EXCLUSIVE MODE")
        upgrading.result(PATIENCE)
    if first != "rollup_state":
        assert world.value("SELECT records_sent FROM streamer_state") == 2


@pytest.mark.parametrize("table", ["rides", "receipts"])
def test_an_upgrade_counts_all_there_is_before_it_keeps_anybody_waiting(
    world: World, table: str
) -> None:
    downgrade(world.postgres_url, "0005")
    holding, meanwhile = world.connect(), world.connect(statement_timeout="3s")
    with ThreadPoolExecutor(1) as threads:
        with holding.transaction():
            holding.execute(f"LOCK {table}")
            upgrading = threads.submit(upgrade, world.postgres_url)
            eventually(lambda: world.value("SELECT count(*) FROM pg_locks WHERE NOT granted"))
            meanwhile.execute("SELECT FROM checkpoints, streamer_state", prepare=False)
        upgrading.result(PATIENCE)


@pytest.mark.parametrize(
    ("found", "advice"),
    [
        ("0000", "run python -m migrations to upgrade it"),
        ("9999", "newer than this code, .* install the newer code"),
    ],
)
def test_a_schema_of_another_time_is_told_with_what_to_do(
    world: World, found: str, advice: str
) -> None:
    world.connection.execute("UPDATE alembic_version SET version_num = %s", [found])
    with pytest.raises(Unavailable, match=f"schema is {found}.*{advice}"):
        database.require_current_schema(world.connection)


RECONCILE = """
    INSERT INTO reconciliations (last_ride_id, total_distance, rides, duration_seconds, compared)
    VALUES (%s)
"""
RESET = """
    INSERT INTO resets (reconciliation_id, consumer_name, status, changed_at,
                        from_ride_id, from_total, to_ride_id, to_total)
    SELECT max(id), %s FROM reconciliations
"""
RECEIPT = (
    "INSERT INTO receipts"
    " (ride_id, outcome, attempts, decided_at, dead_at, replay_at, dropped_at, due_at)"
    " VALUES (1, %s, now())"
)
MINUTE = "INSERT INTO ride_minutes (minute, rides, distance, upto) VALUES (%s)"
REFUSED = {
    "a ride with an id of its own": "INSERT INTO rides (id, distance) VALUES (7, 5)",
    "a ride of nothing": "INSERT INTO rides (distance) VALUES (0)",
    "a ride backwards": "INSERT INTO rides (distance) VALUES (-1)",
    "a ride of NaN": "INSERT INTO rides (distance) VALUES ('NaN')",
    "a ride too long": "INSERT INTO rides (distance) VALUES (1e9)",
    "a ride without a distance": "INSERT INTO rides DEFAULT VALUES",
    "a record without data": "INSERT INTO staged_log_records VALUES (1, 'create', 'ride', NULL)",
    "a second streamer state": "INSERT INTO streamer_state (only_row) VALUES (false)",
    "a streamer state again": "INSERT INTO streamer_state DEFAULT VALUES",
    "a negative last_sent": "UPDATE streamer_state SET last_sent_id = -1",
    "a term before all rides": "INSERT INTO terms VALUES (-1, '0123456789abcdef')",
    "a term without a name": "INSERT INTO terms VALUES (1, '')",
    "a term twice": "INSERT INTO terms VALUES (1, '0123456789abcdef'), (2, '0123456789abcdef')",
    "two terms at once": "INSERT INTO terms VALUES (1, repeat('0', 16)), (1, repeat('1', 16))",
    "an outcome of another kind": RECEIPT % "'lost', 1, now(), NULL, NULL, NULL",
    "fewer than no attempts": RECEIPT % "NULL, -1, NULL, NULL, NULL, NULL",
    "an outcome at no time": RECEIPT % "'delivered', 1, NULL, NULL, NULL, NULL",
    "a time of no outcome": RECEIPT % "NULL, 1, now(), NULL, NULL, NULL",
    "a dead letter of no time": RECEIPT % "'dead', 1, now(), NULL, NULL, NULL",
    "a delivered dead letter": RECEIPT % "'delivered', 1, now(), now(), NULL, NULL",
    "a replay of what is not dead": RECEIPT % "NULL, 1, NULL, NULL, now(), NULL",
    "a drop of what is not dead": RECEIPT % "NULL, 1, NULL, NULL, NULL, now()",
    "a replay of what was dropped": RECEIPT % "'dead', 1, now(), now(), now(), now()",
    "a second state of receipts": "INSERT INTO receipts_state SELECT false, 0, 0, 0, salt"
    " FROM receipts_state",
    "receipts complete before they began": "UPDATE receipts_state SET since = complete_to + 1",
    "an empty salt": "UPDATE receipts_state SET salt = ''",
    "fewer than no entries": "UPDATE checkpoints SET unbelieved_entries = -1",
    "fewer than no gaps": "UPDATE checkpoints SET gaps_healed = -1",
    "a checkpoint that was never anywhere": "UPDATE checkpoints SET furthest = -1",
    "a healed distance of NaN": "UPDATE checkpoints SET distance_healed = 'NaN'",
    "fewer records sent than none": "UPDATE streamer_state SET records_sent = -1",
    "a worker twice": "INSERT INTO receipts_workers (name) VALUES (''), ('')",
    "a consumer of no kind": "INSERT INTO checkpoints (name, kind) VALUES ('a', '')",
    "a consumer twice": "INSERT INTO checkpoints (kind, name) VALUES ('total', 'c')",
    "a total of another kind": "INSERT INTO consumer_states (name, kind) VALUES ('c', 'rollup')",
    "a total of a rollup": "INSERT INTO consumer_states (name) VALUES ('rolled')",
    "a reset of a rollup": RESET % "'rolled', 'pending', NULL, NULL, NULL, NULL, NULL",
    "half a minute": MINUTE % "'2026-03-01 10:00:30Z', 1, 1, 1",
    "no minute at all": MINUTE % "'infinity', 1, 1, 1",
    "a minute of less than no rides": MINUTE % "'2026-03-01 10:00Z', -1, 1, 1",
    "a minute of NaN": MINUTE % "'2026-03-01 10:00Z', 1, 'NaN', 1",
    "a minute below nothing": MINUTE % "'2026-03-01 10:00Z', 1, -1, 1",
    "a minute before all rides": MINUTE % "'2026-03-01 10:00Z', 1, 1, -1",
    "a second rollup state": "INSERT INTO rollup_state (only_row) VALUES (false)",
    "complete to less than nothing": "UPDATE rollup_state SET complete_to = -1",
    "a generation without a name": "UPDATE rollup_state SET generation = 'x'",
    "an Ick without a generation": "UPDATE rollup_state SET ick = 'x'",
    "a nameless consumer": "INSERT INTO checkpoints (name) VALUES ('')",
    "an overlong name": "INSERT INTO checkpoints (name) VALUES (repeat('x', 65))",
    "a checkpoint nowhere": "INSERT INTO checkpoints (name, last_redis_id) VALUES ('a', 'x')",
    "a state without a checkpoint": "INSERT INTO consumer_states (name) VALUES ('a')",
    "a negative total": "INSERT INTO consumer_states (name, total_distance) VALUES ('c', -1)",
    "a total of NaN": "INSERT INTO consumer_states (name, total_distance) VALUES ('c', 'NaN')",
    "a reconciliation before all rides": RECONCILE % "-1, 0, 0, 0, '{}'",
    "a reconciliation below nothing": RECONCILE % "0, -0.001, 0, 0, '{}'",
    "a reconciliation of NaN": RECONCILE % "0, 'NaN', 0, 0, '{}'",
    "a negative number of rides": RECONCILE % "0, 0, -1, 0, '{}'",
    "a job done before it began": RECONCILE % "0, 0, 0, -0.001, '{}'",
    "a job that took NaN": RECONCILE % "0, 0, 0, 'NaN', '{}'",
    "a comparison with nothing": RECONCILE % "0, 0, 0, 0, NULL",
    "a reset by nobody": "INSERT INTO resets (reconciliation_id, consumer_name) VALUES (0, 'c')",
    "a reset of nobody": RESET % "'a', 'pending', NULL, NULL, NULL, NULL, NULL",
    "a second reset by the same": RESET % "'r', 'pending', NULL, NULL, NULL, NULL, NULL",
    "a reset of unknown status": RESET % "'c', 'x', now(), NULL, NULL, NULL, NULL",
    "a pending reset that changed": RESET % "'c', 'pending', now(), NULL, NULL, NULL, NULL",
    "a reset applied at no time": RESET % "'c', 'applied', NULL, 1, 1, 1, 1",
    "a reset superseded at no time": RESET % "'c', 'superseded', NULL, NULL, NULL, NULL, NULL",
    "a reset applied to nothing": RESET % "'c', 'applied', now(), 1, 1, 1, NULL",
    "a superseded reset with a total": RESET % "'c', 'superseded', now(), NULL, NULL, NULL, 1",
    "a reconciliation gone from under its resets": "DELETE FROM reconciliations",
}


@pytest.fixture(scope="module")
def connection(module_world: World) -> Iterator[psycopg.Connection]:
    module_world.connection.execute(
        "INSERT INTO checkpoints (kind, name)"
        " VALUES ('total', 'c'), ('total', 'r'), ('rollup', 'rolled')"
    )
    module_world.connection.execute(RECONCILE % "0, 0, 0, 0, '{}'")
    module_world.connection.execute(RESET % "'r', 'pending', NULL, NULL, NULL, NULL, NULL")
    yield module_world.connection
    module_world.connection.execute("DELETE FROM checkpoints")
    module_world.connection.execute("DELETE FROM reconciliations")


@pytest.mark.parametrize("what", REFUSED)
def test_the_database_refuses(connection: psycopg.Connection, what: str) -> None:
    with pytest.raises((psycopg.errors.IntegrityError, psycopg.errors.Error)) as refusal:
        connection.execute(REFUSED[what])
    assert refusal.value.sqlstate is not None
    assert refusal.value.sqlstate[:2] in {"23", "22"} or refusal.value.sqlstate == "428C9"


@pytest.mark.parametrize(
    "reset",
    [
        "'c', 'pending', NULL, NULL, NULL, NULL, NULL",
        "'c', 'superseded', now(), NULL, NULL, NULL, NULL",
        "'c', 'applied', now(), 0, 0, 1, 0.001",
    ],
)
def test_the_database_takes_a_reset_and_forgets_it_with_its_consumer(
    world: World, reset: str
) -> None:
    """What is refused above is refused for its one fault."""
    world.connection.execute("INSERT INTO checkpoints (kind, name) VALUES ('total', 'c')")
    world.connection.execute(RECONCILE % "0, 0, 0, 0, '{}'")
    world.connection.execute(RESET % reset)
    world.connection.execute("DELETE FROM checkpoints")
    assert world.value("SELECT count(*) FROM resets") == 0


def test_the_position_is_drawn_from_one_uncached_sequence(world: World) -> None:
    row = world.connection.execute(
        "SELECT seqcache FROM pg_sequence WHERE seqrelid = 'log_position'::regclass"
    ).fetchone()
    assert row == (1,)
