"""The streamer as a process: leading, standing by, stopping, and what a leader looks at."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rocket_rides.locks import Lock
from tests.support.disasters import trigger
from tests.support.world import World, catch_up, chained, eventually, transaction
from unified_log.locks import try_lock
from unified_log.standby import END_HUNG
from unified_log.streamer import checks
from unified_log.streamer.upkeep import Alarms

ATTEMPTS = 4
# Leaders: a standby that has stood by for a second is called the same.
AT_WORK = """
    SELECT count(*) FROM pg_stat_activity JOIN pg_locks USING (pid)
    WHERE datname = current_database() AND application_name = 'streamer'
      AND locktype = 'advisory' AND objsubid = 1 AND granted
"""

HANGS = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'ClientWrite'"
# A time-out that has passed, though not twice.
PASSED = "(SELECT 0.6 * extract(epoch FROM now() - query_start) FROM pg_stat_get_activity(%s))"


def test_a_second_streamer_stands_by_and_takes_over(world: World) -> None:
    leader = world.service("streamer").says("leading")
    standby = world.service("streamer").says("another streamer leads; standing by")
    leader.kill()
    standby.says("leading")
    assert standby.output.read_text().count("standing by") == 1


@contextmanager
def batch_in_flight(world: World) -> Iterator[None]:
    """Two rides, sent and not yet committed: the streamer waits for the row that tells last_sent.

    Not for a paused Redis: there the leader's trimming would wait too, outside of any batch.
    """
    eventually(lambda: world.value(AT_WORK) == 1, "a leader that has looked for a batch")
    with transaction(world) as blocker:
        blocker.execute("SELECT FROM streamer_state FOR UPDATE")
        world.take(1, 2)
        eventually(lambda: world.waiting == 1, "a batch in flight")
        yield


def test_a_leader_stopped_inside_a_batch_is_replaced(world: World) -> None:
    leader = world.service("streamer", LEADER_TIMEOUT="3").says("leading")
    standby = world.service("streamer").says("standing by")
    with batch_in_flight(world):
        leader.pause()
    standby.says("leading")
    eventually(lambda: world.staged() == 0)
    leader.resume()
    leader.says("standing by")
    assert chained(world)
    assert catch_up(world.consumer())[1] == 3


# No lock_timeout ends this. A sequence counts also what is rolled back, so it hangs only once.
HANG_ONCE = "IF nextval('moves') = 1 THEN PERFORM pg_sleep(3600); END IF; RETURN NEW;"


def test_a_leader_whose_statement_hangs_is_stopped_by_the_server(world: World) -> None:
    """And leads again: else a leader that nobody answers would lead for ever."""
    world.connection.execute("CREATE SEQUENCE moves")
    trigger(world, "hang", "BEFORE UPDATE ON streamer_state", HANG_ONCE)
    world.take(1, 2)
    leader = world.service("streamer", LEADER_TIMEOUT="1").says("leading")
    leader.says("canceling statement due to statement timeout")
    eventually(lambda: world.staged() == 0)
    assert chained(world)
    assert catch_up(world.consumer())[1] == 3


@pytest.mark.parametrize(
    ("module", "lock"), [("streamer", Lock.LEADER), ("consumers.rollup", Lock.ROLLUP)]
)
def test_a_leader_that_hangs_while_it_is_sent_rows_is_ended_by_its_standby(
    world: World, module: str, lock: Lock
) -> None:
    """No time-out of Postgres' ends that: it waits for its client to take them."""
    hung = world.connect()
    assert try_lock(hung, lock)
    hung.pgconn.send_query(b"SELECT repeat('x', 1000000) FROM generate_series(1, 100)")
    pid = hung.info.backend_pid
    eventually(lambda: world.value(HANGS, pid) == 1)
    assert world.connection.execute(END_HUNG % (int(lock), PASSED % pid)).fetchall() == []
    world.service(module, LEADER_TIMEOUT="1").says("leading")


def test_sigterm_finishes_the_batch_in_flight(world: World) -> None:
    streamer = world.service("streamer").says("leading")
    with batch_in_flight(world):
        streamer.process.terminate()
    assert streamer.ends() == 0
    assert world.staged() == 0
    assert len(world.records()) == 2


@pytest.mark.proves("durable")
def test_a_commit_that_may_be_lost_is_warned_about(world: World) -> None:
    """Either by a crash, or by a fail-over to a standby."""
    for level in ("off", "local"):
        session = world.connect(synchronous_commit=level)
        [warning] = checks.durability_warnings(session, world.log())
        assert warning.startswith(f"Postgres has synchronous_commit {level}:")


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [("appendfsync", "everysec", "always"), ("maxmemory-policy", "allkeys-lru", "noeviction")],
)
def test_a_setting_that_changes_under_a_leader_is_warned_about_once(
    world: World, caplog: pytest.LogCaptureFixture, setting: str, wrong: str, right: str
) -> None:
    log, alarms = world.log(), Alarms()
    alarms.look(world.connection, log, 0, [])
    assert caplog.messages == []
    for _ in range(2):
        log.redis.config_set(setting, wrong)
        try:
            for _ in range(2):
                alarms.look(world.connection, log, 0, [])
        finally:
            log.redis.config_set(setting, right)
        alarms.look(world.connection, log, 0, [])  # it was right in between
    assert [wrong in message for message in caplog.messages] == [True, True]


def test_a_look_for_stranded_records_that_takes_too_long_is_said_and_stops_nothing(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "STRANDED", "SELECT pg_sleep(3600) WHERE %s >= 0")
    connection = world.connect(statement_timeout="1h")
    Alarms().look(connection, world.log(), 0, [])
    assert caplog.messages[0].startswith("the outbox can't be looked through")
    assert connection.execute("SHOW statement_timeout").fetchone() == ("1h",)


def terms_begun(world: World) -> int:
    """How often a streamer has taken the lead without committing anything."""
    return world.value("SELECT coalesce(max(cardinality(replaced)), 0) FROM terms")


def test_a_streamer_says_once_that_it_leads_however_often_it_tries(world: World) -> None:
    """The warnings about durability, too; and again when it really leads once more."""
    control = world.log().redis
    control.config_set("appendfsync", "everysec")
    streamer = world.service("streamer").says("leading")
    try:
        control.execute_command("REPLICAOF", "127.0.0.1", "1")  # type: ignore[no-untyped-call]
        world.take(1)
        before = terms_begun(world)
        eventually(lambda: terms_begun(world) >= before + ATTEMPTS, "more attempts")
        said = streamer.output.read_text()
        assert said.count("leading;") == 1
        assert said.count("appendfsync everysec") == 1
        assert "trying again until it works" in said
    finally:
        control.execute_command("REPLICAOF", "NO", "ONE")  # type: ignore[no-untyped-call]
        control.config_set("appendfsync", "always")
    eventually(lambda: world.staged() == 0)
    eventually(lambda: streamer.output.read_text().count("leading;") == 2)


def test_a_type_that_no_consumer_handles_is_said_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.consumer()
    # A program of another sort writes what it likes.
    world.connection.execute("INSERT INTO checkpoints (name, types) VALUES ('x', ARRAY[NULL])")
    alarms, log = Alarms(), world.log()
    for _ in range(2):
        alarms.look(world.connection, log, 0, {"ride.create", "tip.create"})
    [said] = [line for line in caplog.messages if "no consumer with a checkpoint" in line]
    assert "tip.create" in said
