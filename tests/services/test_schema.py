"""The schema: what it refuses, what a later one would find, and what the migration tells."""

from collections.abc import Iterator

import psycopg
import pytest
from alembic.script import ScriptDirectory
from alembic.util import CommandError

import migrations
from migrations import config, upgrade
from rocket_rides import revisions
from rocket_rides.revisions import APPLICATION
from tests.support.world import World
from unified_log.errors import Unavailable


def test_the_newest_revision_is_the_one_that_the_services_ask_for(world: World) -> None:
    head = ScriptDirectory.from_config(config("")).get_current_head()
    assert head == APPLICATION.number(APPLICATION.revision)
    revisions.require_schema(world.connection)


@pytest.mark.parametrize("name", ["a%41b", "a%b", "a%(b)s"])
def test_the_migrations_are_found_in_a_folder_of_any_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "__file__", f"/{name}/__init__.py")
    assert config("").get_main_option("script_location") == f"/{name}"


OLDER = "UPDATE schema_versions SET revision = 10, serves_from = 9 WHERE component = 'rocket_rides'"
FORGOTTEN = "DELETE FROM schema_versions WHERE component = 'rocket_rides'"
ANOTHER = "UPDATE schema_versions SET digest = repeat('0', 64) WHERE component = '{}'"


@pytest.mark.parametrize("change", [FORGOTTEN, "DROP TABLE schema_versions"])
def test_a_schema_of_an_earlier_design_is_told_with_what_to_do(world: World, change: str) -> None:
    world.connection.execute(change)
    advice = "schema is of an earlier design, which this code can't upgrade: CHANGELOG.md says how"
    with pytest.raises(Unavailable, match=advice):
        revisions.require_schema(world.connection)
    with pytest.raises(CommandError, match=advice):
        upgrade(world.postgres_url)


def test_a_schema_that_was_changed_since_is_told_from_this_one(world: World) -> None:
    """Also where it has other columns: an earlier 0010 had no digest."""
    said = (
        "schema was made by another 0011 than this code's, which was changed since: put that back"
        " as it was, or, in development only, start with an empty database"
    )
    world.connection.execute(ANOTHER.format("rocket_rides"))
    with pytest.raises(Unavailable, match=said):
        revisions.require_schema(world.connection)
    with pytest.raises(CommandError, match=said):
        upgrade(world.postgres_url)
    world.connection.execute("ALTER TABLE schema_versions DROP COLUMN digest")
    with pytest.raises(Unavailable, match="of an earlier design"):
        revisions.require_schema(world.connection)


def test_another_schema_of_the_log_is_told_from_this_one(world: World) -> None:
    world.connection.execute(ANOTHER.format("unified_log"))
    said = "the schema of the log was made by another 1 than"
    with pytest.raises(Unavailable, match=said):
        revisions.require_schema(world.connection)
    with pytest.raises(CommandError, match=said):
        upgrade(world.postgres_url)


def test_an_older_schema_is_told_with_what_upgrades_it(world: World) -> None:
    world.connection.execute(OLDER)
    said = "the database's schema is 0010, not 0011; run python -m migrations to upgrade it"
    with pytest.raises(Unavailable, match=said):
        revisions.require_schema(world.connection)


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


def test_the_database_takes_a_reset_and_forgets_it_with_its_consumer(world: World) -> None:
    """What is refused above is refused for its one fault."""
    for reset in (
        "'c', 'pending', NULL, NULL, NULL, NULL, NULL",
        "'c', 'superseded', now(), NULL, NULL, NULL, NULL",
        "'c', 'applied', now(), 0, 0, 1, 0.001",
    ):
        world.connection.execute("INSERT INTO checkpoints (kind, name) VALUES ('total', 'c')")
        world.connection.execute(RECONCILE % "0, 0, 0, 0, '{}'")
        world.connection.execute(RESET % reset)
        world.connection.execute("DELETE FROM checkpoints")
        assert world.value("SELECT count(*) FROM resets") == 0


def test_a_migration_that_is_stopped_before_it_is_done_fails(world: World) -> None:
    migration = world.service("migrations", DATABASE_URL="postgresql:///x?host=/nowhere")
    migration.says("Postgres can't be reached")
    assert migration.stop() == 1


def test_what_no_waiting_would_repair_ends_the_migration_with_one_line(world: World) -> None:
    world.connection.execute(
        "DROP TABLE alembic_version, schema_versions"
    )  # and a strange table rides is there
    strange = world.service("migrations")
    assert strange.ends() == 1
    [line] = strange.output.read_text().splitlines()
    assert line.startswith("not migrated: ")
    assert "already exists" in line


REFUSE = """
    CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE 'relation "fares" does not exist' USING ERRCODE = 'undefined_table'; END $$;
    CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION refuse()
"""


def test_a_migration_that_misses_something_does_not_advise_to_run_itself(world: World) -> None:
    world.connection.execute("DROP TABLE alembic_version, schema_versions")
    world.connection.execute(REFUSE, prepare=False)
    migration = world.service("migrations")
    assert migration.ends() == 1
    [line] = migration.output.read_text().splitlines()
    assert line.startswith('not migrated: relation "fares" does not exist: ')
    assert "python -m migrations" not in line
    assert "restore it, or, in development only, start with an empty database" in line


def test_a_schema_that_can_not_be_upgraded_ends_the_migration_with_one_line(world: World) -> None:
    world.connection.execute("UPDATE schema_versions SET revision = 9999, serves_from = 9999")
    migration = world.service("migrations")
    assert migration.ends() == 1
    assert migration.output.read_text() == (
        "not migrated: the database's schema is 9999, newer than this code, of 0011, which it does"
        " not serve; install the newer code\n"
    )


def test_a_role_that_was_given_no_rights_is_told_what_gives_them(world: World) -> None:
    said = (
        "denied for table schema_versions: python -m migrations.rights gives each role its rights"
    )
    with world.connection.transaction(force_rollback=True):
        world.connection.execute("CREATE ROLE clerk; SET LOCAL ROLE clerk", prepare=False)
        with pytest.raises(Unavailable, match=said):
            revisions.require_schema(world.connection)
