"""Who holds the oldest snapshot: the streamer names him, and the live page says for how long."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from tests.support.looks import look, said
from tests.support.world import World, eventually, transaction
from unified_log.streamer import held_snapshots
from unified_log.streamer.held_snapshots import LONG, HeldSnapshots
from unified_log.streamer.upkeep import Alarms

VACUUMING = """
    SELECT count(*) FROM pg_stat_progress_vacuum JOIN pg_stat_activity USING (pid)
    WHERE backend_xmin IS NOT NULL
"""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_holds_a_snapshot_for_a_minute_is_named_until_he_ends(world: World) -> None:
    clock = Clock()
    snapshots = HeldSnapshots(clock)
    with transaction(world) as holder:
        holder.execute("SET application_name = 'pg_dump'")
        holder.commit()
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT FROM rides")
        assert snapshots.warnings(world.connection) == []
        clock.now = LONG - 1
        world.take(1)  # others go on, and hold nothing
        assert snapshots.warnings(world.connection) == []
        clock.now = LONG
        [line] = snapshots.warnings(world.connection)
        pid, user = holder.info.backend_pid, holder.info.user
        assert f"held by session {pid} (pg_dump, user {user}, idle in transaction), since 2" in line
        holder.execute("SELECT FROM rides")
        assert snapshots.warnings(world.connection) == [line]
    assert snapshots.warnings(world.connection) == []


def test_who_holds_none_for_long_or_one_elsewhere_is_not_named(world: World) -> None:
    clock = Clock()
    snapshots = HeldSnapshots(clock)
    elsewhere = psycopg.connect(world.postgres_url, dbname="postgres")
    with closing(elsewhere), transaction(world) as session:
        for each in (elsewhere, session):
            each.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        elsewhere.execute("SELECT FROM pg_class LIMIT 1")
        for clock.now in range(0, 10 * int(LONG), int(LONG)):
            session.execute("SELECT FROM rides")
            assert snapshots.warnings(world.connection) == []
            session.commit()


def test_a_vacuum_is_not_named(world: World) -> None:
    """Whoever began it: nobody keeps a row for it."""
    clock = Clock()
    snapshots = HeldSnapshots(clock)
    world.connection.execute(
        "CREATE TABLE large AS SELECT repeat('x', 4000) FROM generate_series(1, 2000)"
    )
    with closing(world.connect()) as session, ThreadPoolExecutor(1) as threads:
        session.execute("SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1", prepare=False)
        vacuum = threads.submit(session.execute, "VACUUM large")
        eventually(lambda: world.value(VACUUMING))
        for clock.now in (0, LONG):
            assert snapshots.warnings(world.connection) == []
        assert said(look(world)).oldest_snapshot_transactions == 0
        assert world.value(VACUUMING)
        session.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            vacuum.result()


def test_a_prepared_transaction_is_named(world: World) -> None:
    clock = Clock()
    snapshots = HeldSnapshots(clock)
    with transaction(world) as session:
        session.execute("CREATE TABLE prepared ()")
        session.execute("PREPARE TRANSACTION 'forgotten'")
    try:
        assert snapshots.warnings(world.connection) == []
        clock.now = LONG
        [line] = snapshots.warnings(world.connection)
        assert "held by prepared transaction 'forgotten' (user " in line
    finally:
        world.connection.execute("ROLLBACK PREPARED 'forgotten'")


def test_the_leader_says_so_and_the_page_for_how_long(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_snapshots, "LONG", 0)
    with transaction(world) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT FROM rides")
        Alarms().look(world.connection, world.log(), 0, [])
        assert f"the oldest snapshot is held by session {holder.info.backend_pid} " in caplog.text
        world.take(1)
        database = said(look(world))
        assert database.oldest_snapshot_seconds
        assert database.oldest_snapshot_transactions >= 1
    database = said(look(world))
    assert (database.oldest_snapshot_seconds, database.oldest_snapshot_transactions) == (0, 0)
