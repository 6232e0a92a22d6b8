"""The schema: what it refuses, what a later one would find, and what the migration tells."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from alembic.util import CommandError

import migrations
from migrations import config, upgrade
from rocket_rides import revisions
from rocket_rides.settings import PROJECT
from tests.support.world import World
from unified_log.errors import Unavailable


def test_the_newest_revision_is_the_one_that_the_services_ask_for(world: World) -> None:
    assert ScriptDirectory.from_config(config("")).get_current_head() == revisions.REVISION
    revisions.require_current_schema(world.connection)


@pytest.mark.parametrize("name", ["a%41b", "a%b", "a%(b)s"])
def test_the_migrations_are_found_in_a_folder_of_any_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "__file__", f"/{name}/__init__.py")
    assert config("").get_main_option("script_location") == f"/{name}"


SECOND = """
from alembic import op
revision, down_revision = "0011", "0010"
def upgrade(): op.execute("ALTER TABLE rides ADD tip numeric(12,3)")
"""


def test_a_second_revision_would_apply(world: World, tmp_path: Path) -> None:
    """To a database that is in use: what is there stays."""
    world.take(5)
    (tmp_path / "0011_tips.py").write_text(SECOND)
    both = config(world.postgres_url)
    both.set_main_option("path_separator", "newline")
    both.set_main_option("version_locations", f"{PROJECT / 'migrations/versions'}\n{tmp_path}")
    command.upgrade(both, "head")
    assert world.value("SELECT count(*) FROM rides WHERE tip IS NULL") == 1
    with pytest.raises(Unavailable, match="schema is 0011, newer than this code"):
        revisions.require_current_schema(world.connection)


@pytest.mark.parametrize(
    ("change", "revision"),
    [
        ("UPDATE alembic_version SET version_num = '0009'", "0009"),
        ("DROP FUNCTION standings(bigint)", "0010"),  # which was changed in place
    ],
)
def test_a_schema_of_an_earlier_design_is_told_with_what_to_do(
    world: World, change: str, revision: str
) -> None:
    world.connection.execute(change)
    advice = "of an earlier design, which this code can't upgrade; start with an empty"
    with pytest.raises(Unavailable, match=f"schema is {revision}.*{advice}"):
        revisions.require_current_schema(world.connection)
    with pytest.raises(CommandError, match=f"schema is {revision}.*{advice}"):
        upgrade(world.postgres_url)


RECONCILE = """
    INSERT INTO reconciliations (position, total_distance, rides, duration_seconds, compared)
    VALUES (%s)
"""
RESET = """
    INSERT INTO resets (reconciliation_id, consumer_name, status, changed_at,
                        from_position, from_total, to_position, to_total)
    SELECT max(id), %s FROM reconciliations
"""
RECEIPT = (
    "INSERT INTO receipts"
    " (ride_id, outcome, attempts, decided_at, replay_at, dropped_at, due_at)"
    " VALUES (1, %s, now())"
)
MINUTE = "INSERT INTO ride_minutes (minute, rides, distance, upto) VALUES (%s)"
AT = "INSERT INTO checkpoints (name, last_redis_id) VALUES ('a', '%s')"
REFUSED = {
    "a ride of nothing": "INSERT INTO rides (distance) VALUES (0)",
    "a ride of NaN": "INSERT INTO rides (distance) VALUES ('NaN')",
    "a record too large for a batch": (
        "INSERT INTO staged_log_records VALUES (1, 'a.b', to_jsonb(repeat('x', 8188)))"
    ),
    "a streamer state again": "INSERT INTO streamer_state DEFAULT VALUES",
    "a term without a name": "INSERT INTO terms VALUES (1, '')",
    "two terms at once": "INSERT INTO terms VALUES (1, repeat('0', 16)), (1, repeat('1', 16))",
    "an outcome at no time": RECEIPT % "'delivered', 1, NULL, NULL, NULL",
    "a replay of what is open": RECEIPT % "NULL, 1, NULL, now(), NULL",
    "a replay of what was delivered": RECEIPT % "'delivered', 1, now(), now(), NULL",
    "a replay of what was dropped": RECEIPT % "'dead', 1, now(), now(), now()",
    "receipts complete beyond the inbox": "UPDATE receipts_state SET complete_to = inbox_to + 1",
    "more attempts excused than made": "INSERT INTO receipts (ride_id, excused) VALUES (1, 1)",
    "a key of no ride": "INSERT INTO idempotency_keys (key, distance) VALUES ('k', 1)",
    "a healed distance of NaN": (
        "INSERT INTO consumer_states (name, distance_healed) VALUES ('c', 'NaN')"
    ),
    "a total of another kind": "INSERT INTO consumer_states (name, kind) VALUES ('c', 'rollup')",
    "a total of a rollup": "INSERT INTO consumer_states (name) VALUES ('rolled')",
    "a reset of a rollup": RESET % "'rolled', 'pending', NULL, NULL, NULL, NULL, NULL",
    "half a minute": MINUTE % "'2026-03-01 10:00:30Z', 1, 1, 1",
    "no minute at all": MINUTE % "'infinity', 1, 1, 1",
    "a minute of NaN": MINUTE % "'2026-03-01 10:00Z', 1, 'NaN', 1",
    "a generation without a name": "UPDATE rollup_state SET generation = 'x'",
    "an overlong name": "INSERT INTO checkpoints (name) VALUES (repeat('x', 65))",
    "a checkpoint nowhere": AT % "x",
    "a checkpoint at half an id": AT % "1",
    "a checkpoint at a time that Redis can't read": AT % f"{2**64}-0",
    "a checkpoint at a number that Redis can't read": AT % f"0-{2**64}",
    "a state without a checkpoint": "INSERT INTO consumer_states (name) VALUES ('a')",
    "a total of NaN": "INSERT INTO consumer_states (name, total_distance) VALUES ('c', 'NaN')",
    "a reconciliation of NaN": RECONCILE % "0, 'NaN', 0, 0, '{}'",
    "a job that took NaN": RECONCILE % "0, 0, 0, 'NaN', '{}'",
    "a reset of nobody": RESET % "'a', 'pending', NULL, NULL, NULL, NULL, NULL",
    "a second reset by the same": RESET % "'r', 'pending', NULL, NULL, NULL, NULL, NULL",
    "a pending reset that changed": RESET % "'c', 'pending', now(), NULL, NULL, NULL, NULL",
    "a reset applied at no time": RESET % "'c', 'applied', NULL, 1, 1, 1, 1",
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
    with pytest.raises((psycopg.errors.IntegrityError, psycopg.errors.DataError)):
        connection.execute(REFUSED[what])


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


def test_the_migration_says_that_the_schema_is_up_to_date(world: World) -> None:
    migration = world.service("migrations")
    assert migration.process.wait(30) == 0
    assert "the schema is up to date" in migration.output.read_text()


def test_a_migration_that_is_stopped_before_it_is_done_fails(world: World) -> None:
    migration = world.service("migrations", DATABASE_URL="postgresql:///x?host=/nowhere")
    migration.says("Postgres can't be reached")
    assert migration.stop() == 1


def test_what_no_waiting_would_repair_ends_the_migration_with_one_line(world: World) -> None:
    world.connection.execute("DROP TABLE alembic_version")  # and a strange table rides is there
    strange = world.service("migrations")
    assert strange.process.wait(30) == 1
    [line] = strange.output.read_text().splitlines()
    assert line.startswith("not migrated: ")
    assert "already exists" in line


REFUSE = """
    CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE 'relation "fares" does not exist' USING ERRCODE = 'undefined_table'; END $$;
    CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION refuse()
"""


def test_a_migration_that_misses_something_does_not_advise_to_run_itself(world: World) -> None:
    world.connection.execute("DROP TABLE alembic_version")
    world.connection.execute(REFUSE, prepare=False)
    migration = world.service("migrations")
    assert migration.process.wait(30) == 1
    [line] = migration.output.read_text().splitlines()
    assert line.startswith('not migrated: relation "fares" does not exist: ')
    assert "python -m migrations" not in line
    assert "start with an empty database" in line


def test_a_schema_that_can_not_be_upgraded_ends_the_migration_with_one_line(world: World) -> None:
    world.connection.execute("UPDATE alembic_version SET version_num = '9999'")
    migration = world.service("migrations")
    assert migration.process.wait(30) == 1
    assert migration.output.read_text() == (
        "not migrated: the database's schema is 9999, newer than this code, which needs 0010;"
        " install the newer code\n"
    )
    assert world.value("SELECT version_num FROM alembic_version") == 9999
