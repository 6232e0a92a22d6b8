"""The streamer as a process: leading, standing by, stopping, and what a leader looks at."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streamer import checks
from streamer.upkeep import Alarms
from tests.support.world import World, catch_up, chained, drain, eventually, transaction


def test_a_second_streamer_stands_by_and_takes_over(world: World) -> None:
    leader = world.service("streamer").says("leading")
    standby = world.service("streamer").says("another streamer leads; standing by")
    leader.kill()
    standby.says("leading")
    assert standby.output.read_text().count("standing by") == 1
    world.take(1)
    eventually(lambda: world.staged() == 0)


def test_a_stopped_leader_is_replaced_and_can_do_no_harm_when_it_wakes(world: World) -> None:
    leader = world.service("streamer", LEADER_TIMEOUT="2").says("leading")
    standby = world.service("streamer").says("standing by")
    leader.pause()
    world.take(1, 2)
    standby.says("leading")
    eventually(lambda: world.staged() == 0)
    leader.resume()
    leader.says("trying again")
    leader.says("standing by")
    world.take(3)
    eventually(lambda: world.staged() == 0)
    assert chained(world)
    assert catch_up(world.consumer()).total == 6


@contextmanager
def batch_in_hand(world: World) -> Iterator[None]:
    """Two rides, sent and not yet committed: the streamer waits for the row that tells last_sent.

    Not for a paused Redis: there the leader's trimming would wait too, outside of any batch.
    """
    at_work = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'streamer'"
    waiting = f"{at_work} AND wait_event_type = 'Lock'"
    eventually(lambda: world.value(at_work) == 1, "a leader that has looked for a batch")
    with transaction(world) as blocker:
        blocker.execute("SELECT FROM streamer_state FOR UPDATE")
        world.take(1, 2)
        eventually(lambda: world.value(waiting) == 1, "a batch in hand")
        yield


def test_a_leader_stopped_inside_a_batch_is_replaced(world: World) -> None:
    leader = world.service("streamer", LEADER_TIMEOUT="3").says("leading")
    standby = world.service("streamer").says("standing by")
    with batch_in_hand(world):
        leader.pause()
    standby.says("leading")
    eventually(lambda: world.staged() == 0)
    leader.resume()
    leader.says("standing by")
    assert chained(world)
    assert catch_up(world.consumer()).total == 3


# No lock_timeout ends this. A sequence counts also what is rolled back, so it hangs only once.
HANGS_ONCE = """
    CREATE SEQUENCE moves;
    CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('moves') = 1 THEN PERFORM pg_sleep(3600); END IF;
            RETURN NEW;
        END
    $$;
    CREATE TRIGGER hangs BEFORE UPDATE ON streamer_state FOR EACH ROW EXECUTE FUNCTION hang()
"""


def test_a_leader_whose_statement_hangs_is_stopped_by_the_server(world: World) -> None:
    """And leads again: else a leader that nobody answers would lead for ever."""
    world.connection.execute(HANGS_ONCE, prepare=False)
    world.take(1, 2)
    leader = world.service("streamer", LEADER_TIMEOUT="1").says("leading")
    leader.says("canceling statement due to statement timeout")
    eventually(lambda: world.staged() == 0)
    assert chained(world)
    assert catch_up(world.consumer()).total == 3


def test_sigterm_finishes_the_batch_in_hand(world: World) -> None:
    streamer = world.service("streamer").says("leading")
    with batch_in_hand(world):
        streamer.process.terminate()
    assert streamer.process.wait(30) == 0
    assert world.staged() == 0
    assert len(world.records()) == 2


def test_sigterm_ends_a_streamer_with_status_zero(world: World) -> None:
    streamer = world.service("streamer").says("leading")
    world.take(1)
    assert streamer.stop() == 0
    drain(world.streamer())
    assert len({record.id for record in world.records()}) == 1


def test_stranded_records_are_reported(world: World) -> None:
    world.take(1, 2)
    drain(world.streamer())
    world.connection.execute("INSERT INTO staged_log_records VALUES (1, 'create', 'ride', '{}')")
    [alarm] = checks.stranded_warnings(world.connection, 2)
    assert "never sent: records 1; python -m streamer.mend" in alarm
    world.service("streamer").says(alarm)


def test_two_streamers_that_try_in_vain_say_why_and_nothing_else(world: World) -> None:
    """Each sees the other hold the lock for a moment: that is no leader to stand by for."""
    world.connection.execute("ALTER SEQUENCE log_position CACHE 10")
    streamers = [world.service("streamer") for _ in range(2)]
    seen: set[int] = set()

    def attempts() -> int:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'streamer%'"
        seen.update(pid for (pid,) in world.connection.execute(query))
        return len(seen)

    eventually(lambda: attempts() >= 8, "more attempts")
    for streamer in streamers:
        streamer.says("CACHE 10")
        assert streamer.output.read_text().count("standing by") <= 1
    names = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'streamer'"
    assert world.value(names) == 0


@pytest.mark.stream_servers
def test_servers_that_may_lose_data_are_warned_about(world: World) -> None:
    log = world.log()
    assert checks.durability_warnings(world.connection, log) == []
    log.redis.config_set("appendfsync", "everysec")
    try:
        unsafe = world.connect(synchronous_commit="off")
        warnings = checks.durability_warnings(unsafe, log)
        world.service("streamer").says("Redis has appendfsync everysec")
    finally:
        log.redis.config_set("appendfsync", "always")
    assert [w.split(",")[0].split(":")[0] for w in warnings] == [
        "Redis has appendfsync everysec",
        "Postgres has synchronous_commit off",
    ]


@pytest.mark.proves("durable")
@pytest.mark.parametrize("level", ["off", "local"])
def test_a_commit_that_may_be_lost_is_warned_about(world: World, level: str) -> None:
    """Either by a crash, or by a fail-over to a standby."""
    session = world.connect(synchronous_commit=level)
    [warning] = checks.durability_warnings(session, world.log())
    assert warning.startswith(f"Postgres has synchronous_commit {level}:")


@pytest.mark.stream_servers
def test_a_setting_that_changes_under_a_leader_is_warned_about_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    log, alarms = world.log(), Alarms()
    alarms.look(world.connection, log, 0)
    assert caplog.messages == []
    for _ in range(2):
        log.redis.config_set("appendfsync", "everysec")
        try:
            for _ in range(2):
                alarms.look(world.connection, log, 0)
        finally:
            log.redis.config_set("appendfsync", "always")
        alarms.look(world.connection, log, 0)  # it was right in between
    assert ["everysec" in message for message in caplog.messages] == [True, True]


def test_a_streamer_without_its_servers_waits_for_them(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    streamer = world.service("streamer").says("leading")
    world.postgres.stop()
    streamer.says("trying again")
    world.postgres.start()
    world.take(1)
    eventually(lambda: world.staged() == 0)
    world.redis.stop()
    world.take(2)
    world.redis.start()
    eventually(lambda: world.staged() == 0)
    assert catch_up(world.consumer()).total == 3
