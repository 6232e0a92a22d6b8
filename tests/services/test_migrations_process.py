"""`python -m migrations` as a process: it waits for the server, and tells what has become of it."""

from tests.support.world import World


def test_it_migrates_and_says_so(world: World) -> None:
    migration = world.service("migrations")
    assert migration.process.wait(30) == 0
    assert "the schema is up to date" in migration.output.read_text()


def test_stopped_before_it_is_done_it_fails(world: World) -> None:
    migration = world.service("migrations", DATABASE_URL="postgresql:///x?host=/nowhere")
    migration.says("Postgres can't be reached")
    assert migration.stop() == 1


def test_what_waiting_would_not_mend_is_one_line(world: World) -> None:
    world.connection.execute("DROP TABLE alembic_version")  # and a strange table rides is there
    strange = world.service("migrations")
    assert strange.process.wait(30) == 1
    [line] = strange.output.read_text().splitlines()
    assert line.startswith("not migrated: ")
    assert "already exists" in line


def test_a_schema_that_it_can_not_upgrade_is_one_line(world: World) -> None:
    world.connection.execute("UPDATE alembic_version SET version_num = '9999'")
    migration = world.service("migrations")
    assert migration.process.wait(30) == 1
    assert migration.output.read_text() == (
        "not migrated: the database's schema is 9999, newer than this code, which needs 0010;"
        " install the newer code\n"
    )
    assert world.value("SELECT version_num FROM alembic_version") == 9999
