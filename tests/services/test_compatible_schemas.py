"""Beside a newer schema old processes go on, as long as it serves them; then they have to end."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from analytics.reconcile import the_only_run
from rocket_rides import revisions
from rocket_rides.health import is_at_work
from rocket_rides.revisions import APPLICATION
from rocket_rides.sessions import receipts
from tests.support.api import Api
from tests.support.looks import look
from tests.support.newer import Release
from tests.support.receipts import SECRET
from tests.support.world import World, eventually, transaction
from unified_log.errors import Unavailable
from unified_log.sessions import reader

ADD = "ALTER TABLE rides ADD tip numeric(12,3)"
REMOVE = "ALTER TABLE consumer_states DROP COLUMN distance_healed"
REVISION = "SELECT revision FROM schema_versions WHERE component = 'rocket_rides'"
IS_UNSERVED = (
    "the database's schema is 0013, newer than this code, of 0011, which it does not serve"
)


@pytest.fixture
def newer(tmp_path: Path) -> Release:
    """The next release, which adds a column."""
    return Release(tmp_path / "newer").revise(12, ADD, serves_from=11)


@pytest.fixture
def api(world: World) -> Iterator[Api]:
    api = Api(world)
    yield api
    api.client.close()


@contextmanager
def under_load(api: Api) -> Iterator[list[int]]:
    """Rides are posted, one after another: each is taken, and as often the API is ready.

    Yields the statuses so far. A POST that waits for a lock for 0.4 s is refused by the API itself.
    """
    statuses, stop = list[int](), Event()

    def post() -> None:
        while not stop.wait(0.01):
            statuses.append(api.post().status_code)
            statuses.append(api.client.get("/readyz").status_code)

    thread = Thread(target=post)
    thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        thread.join()
    assert {*statuses} == {201, 200}


@pytest.mark.proves("compatible-schemas")
def test_processes_go_on_beside_a_newer_schema_that_serves_them(
    world: World, api: Api, newer: Release
) -> None:
    streamer = world.service("streamer").says("leading")
    world.service("consumers.totals", "consumer0").says("stands at")
    new = newer.service(world, "consumers.totals", "new")
    new.says("the database's schema is 0011, not 0012; run python -m migrations to upgrade it")
    with under_load(api):
        assert "the schema is up to date" in newer.migrate(world)
        eventually(lambda: world.standing()[0] > 0, "a total")
        streamer.kill()
        world.service("streamer").says("leading")  # what is started again is served, too
        world.service("consumers.totals", "late").says("stands at")
        new.says("stands at")
    names = ("consumer0", "late", "new")
    eventually(lambda: {*map(world.standing, names)} == {world.truth}, "all rides in each total")
    assert all(is_at_work(world.connection, reader("total", name)) for name in names)
    health = world.service("rocket_rides.health", "reader", "total", "late")
    assert health.ends() == 0
    with the_only_run(world.postgres_url):  # the night's
        pass
    assert look(world).database
    migration = world.service("migrations")
    assert migration.ends() == 0
    assert "the schema is 0012, newer than this code" in migration.output.read_text()
    assert "the schema is up to date for this code, of 0011" in migration.output.read_text()
    newer.add("0013_silent.py", 'revision, down_revision = "0013", "0012"\ndef upgrade(): pass\n')
    migration = newer.service(world, "migrations")
    assert migration.ends() == 1
    assert "0013 has to say which code it serves" in migration.output.read_text()
    assert world.value(REVISION) == 12


def test_a_migration_that_ends_the_service_of_old_code_waits_for_it_by_name(
    world: World, api: Api, newer: Release
) -> None:
    consumer = world.service("consumers.totals", "consumer0").says("stands at")
    eventually(lambda: is_at_work(world.connection, reader("total", "consumer0")))
    with under_load(api):
        newer.revise(13, REMOVE, serves_from=12)
        migration = newer.service(world, "migrations")
        migration.says("0013 waits: processes that are older than 0012 have to end: ")
        migration.says("reader total consumer0 (pid ")
        [waits, *_] = [
            line for line in migration.output.read_text().splitlines() if "0013 waits" in line
        ]
        assert re.search(r"api \((pid|\d+ sessions)\b.*?, of 0011, (at 127.0.0.1, )?since ", waits)
        assert "migrations" not in waits.partition("have to end: ")[2]
        new = newer.service(world, "consumers.totals", "new")
        new.says("the database's schema is 0012, not 0013")
    assert consumer.stop() == 0
    assert api.service.stop() == 0
    assert migration.ends() == 0
    new.says("stands at")
    world.service("consumers.totals", "consumer0").says(IS_UNSERVED)
    with pytest.raises(Unavailable, match=IS_UNSERVED):
        revisions.require_schema(world.connection)
    late = Api(world)
    for answer in (late.client.get("/readyz"), late.post()):
        assert answer.status_code == 503
        assert IS_UNSERVED in answer.text
    late.client.close()
    assert IS_UNSERVED in look(world).postgres.reason


OF_THE_LOG = """
from alembic import op
from migrations.waiting import exclude_older
from unified_log.schema import LOG

revision, down_revision, serves_from = "{:04}", "{:04}", "0010"


def upgrade():
    if {ends}:
        exclude_older(op.get_bind().connection.driver_connection, LOG.revision, LOG)
    op.execute("ALTER TABLE streamer_state ADD IF NOT EXISTS noted text")
    op.execute(
        "UPDATE schema_versions SET (revision, serves_from, digest) ="
        f" ({{LOG.revision}}, {serves_from}, '{{LOG.digest}}') WHERE component = '{{LOG.name}}'"
    )
"""


def test_a_second_revision_of_the_library_serves_the_first_until_it_ends_that(
    world: World, tmp_path: Path
) -> None:
    newer = Release(tmp_path / "newer")
    code = newer.folder / "unified_log/schema/__init__.py"
    code.write_text(code.read_text().replace("    revision=1,\n", "    revision=2,\n"))
    old = [world.service("streamer").says("leading")]
    consumer = newer.service(world, "consumers.totals", "new")
    consumer.says("the schema of the log is 1, not 2; run the migration that upgrades it")
    newer.add("0012_log.py", OF_THE_LOG.format(12, 11, ends=False, serves_from=1)).migrate(world)
    consumer.says("stands at")
    old.append(world.service("consumers.totals", "consumer0").says("stands at"))
    world.take(1, 2)
    eventually(lambda: {*map(world.standing, ("consumer0", "new"))} == {world.truth}, "all rides")
    newer.add("0013_log.py", OF_THE_LOG.format(13, 12, ends=True, serves_from=2))
    migration = newer.service(world, "migrations")
    migration.says("0013 waits: processes that are older than 2 have to end: ")
    for process in old:
        assert migration.process.poll() is None
        assert process.stop() == 0
    assert migration.ends() == 0
    late = world.service("consumers.totals", "consumer0")
    late.says("the schema of the log is 2, newer than this code, of 1, which it does not serve")
    assert consumer.stop() == 0


def test_a_process_that_comes_while_its_service_ends_waits(world: World) -> None:
    with transaction(world) as migration:
        migration.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)", [APPLICATION.lock, APPLICATION.revision]
        )
        consumer = world.service("consumers.totals", "consumer0")
        consumer.says("a migration is ending the service of this code, of 0011")
        migration.rollback()
        consumer.says("stands at")


def test_a_worker_of_receipts_keeps_its_schema_while_redis_is_away(world: World) -> None:
    """Then it only delivers, in a session of its own."""
    given = {"RECEIPT_URL": "http://127.0.0.1:1", "RECEIPT_SECRET": SECRET}
    worker = world.service("consumers.receipts", "w", REDIS_URL="redis://127.0.0.1:1/0", **given)
    eventually(lambda: is_at_work(world.connection, receipts("w")))
    held = world.value(
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name"
        f" = '{receipts('w')}' AND locktype = 'advisory' AND classid = {APPLICATION.lock:d}"
    )
    assert held == 1
    assert worker.stop() == 0


READ = "SELECT count(*) FROM rides"


def test_a_migration_names_who_holds_its_lock_and_nobody_waits_long_behind_it(
    world: World, api: Api, newer: Release
) -> None:
    """A reader of all rides, in a transaction that is open for some seconds."""
    with under_load(api) as answers, transaction(world) as reading:
        reading.execute("SET application_name = 'a long report'")
        reading.execute(READ)
        pid = reading.info.backend_pid
        migration = newer.service(world, "migrations")
        migration.says(f"0012 waits: a lock is held by a long report (pid {pid}, in a transaction ")
        posts = len(answers)
        with transaction(world) as late:
            late.execute("SET application_name = 'another report'")
            late.execute(READ)
            migration.says("another report (pid ")
        said = migration.output.read_text()
        assert READ in said
        assert said.count("0012 waits") == 2  # nobody is named again who only stays
        assert len(answers) > posts
        reading.rollback()
        assert migration.ends() == 0
