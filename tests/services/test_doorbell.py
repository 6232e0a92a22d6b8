"""The doorbell: a ride that is taken while the leader sleeps wakes it, and no ride is missed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tests.support.engine import TAKE_BY_PSYCOPG
from tests.support.world import PATIENCE, World, eventually, take, transaction
from unified_log import session_settings
from unified_log.process import Stop
from unified_log.streamer import leading
from unified_log.streamer.doorbell import ARM, Doorbell
from unified_log.streamer.upkeep import Alarms
from unified_log.tracing import NO_TRACE
from unified_log.waiting import Progress

ARMED = "SELECT count(pg_sequence_last_value('doorbell'))"
AT_ONCE, NEVER = 0.0, 3600.0  # seconds; only a leader is to wake from the latter


@pytest.fixture
def sleeper(world: World) -> psycopg.Connection:
    """The connection of somebody who waits for rides."""
    return world.connect()


@pytest.fixture
def bell(sleeper: psycopg.Connection) -> Doorbell:
    return Doorbell(sleeper)


def post(connection: psycopg.Connection) -> None:
    """Take a ride with the API's own statement."""
    connection.execute(TAKE_BY_PSYCOPG, [Decimal(5), *NO_TRACE])


def rings(bell: Doorbell, patience: float = AT_ONCE) -> bool:
    return bell.wait(Stop(), patience)


def test_a_ride_rings_once_it_is_committed(world: World, bell: Doorbell) -> None:
    bell.arm()
    with transaction(world) as writer:
        post(writer)
        assert not rings(bell)
        writer.commit()
    assert rings(bell, PATIENCE)


def test_only_the_first_ride_after_it_is_armed_rings(
    world: World, bell: Doorbell, sleeper: psycopg.Connection
) -> None:
    heard: list[str] = []
    sleeper.add_notify_handler(lambda notification: heard.append(notification.payload))
    bell.arm()
    for _ in range(3):
        post(world.connection)
    assert world.value(ARMED) == 0
    world.connection.execute("NOTIFY doorbell, 'the end'")
    eventually(lambda: sleeper.execute("SELECT 1") and "the end" in heard, "the end")
    assert len(heard) == 2


def test_a_bell_that_was_lost_is_armed_again(world: World, bell: Doorbell) -> None:
    bell.arm()
    with transaction(world) as doomed:
        post(doomed)
    assert world.value(ARMED) == 0
    assert not rings(bell)
    assert world.value(ARMED) == 1
    post(world.connection)
    assert rings(bell, PATIENCE)


def test_a_bell_that_rings_during_the_last_look_is_not_slept_through(
    world: World, bell: Doorbell, sleeper: psycopg.Connection
) -> None:
    """That look reads the notification, so the connection has nothing more to wait for."""
    bell.arm()
    post(world.connection)
    eventually(lambda: sleeper.execute("SELECT 1") and not bell.armed, "the notification")
    assert rings(bell, PATIENCE)


def test_a_bell_that_rings_while_it_is_armed_is_not_slept_through(world: World) -> None:
    """The notification is read with the answer to the statement that arms it."""

    class Interrupted(psycopg.Connection):
        def execute(self, query: Any, *values: Any, **options: Any) -> Any:
            answer = super().execute(query, *values, **options)
            if query == ARM:
                post(world.connection)
                super().execute("SELECT 1")
            return answer

    with Interrupted.connect(world.postgres_url, autocommit=True) as connection:
        bell = Doorbell(connection)
        bell.arm()
        assert rings(bell, PATIENCE)


def test_a_process_that_is_asked_to_stop_sleeps_no_longer(bell: Doorbell) -> None:
    stop = Stop()
    stop.ask()
    bell.arm()
    assert bell.wait(stop, PATIENCE)


def test_ringing_takes_no_predicate_lock(world: World, bell: Doorbell) -> None:
    """Else rides would fail to serialize, as each reads what another one writes."""
    bell.arm()
    with transaction(world) as first, transaction(world) as second:
        for writer in (first, second):
            writer.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            post(writer)
        locks = "SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock'"
        assert world.value(f"{locks} AND relation = 'doorbell'::regclass") == 0
        first.commit()
        second.commit()


@contextmanager
def leader(world: World) -> Iterator[None]:
    """One that leads in a thread of this process."""
    stop = Stop()
    config = world.config()
    connection, log = world.connect(**session_settings.INDEX_SCANS), world.log()

    def lead() -> None:
        leading.lead(connection, log, config, stop, Progress(), Alarms())

    thread = threading.Thread(target=lead)
    thread.start()
    try:
        yield
    finally:
        stop.ask()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def test_no_ride_is_missed_between_the_last_look_and_the_sleep(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that comes right before the bell is armed nor one that comes right after."""
    monkeypatch.setattr(leading, "IDLE_POLL", NEVER)
    elsewhere = world.connect()
    arm = Doorbell.arm
    left = iter(range(10))

    def arm_while_rides_come(bell: Doorbell) -> None:
        if next(left, None) is not None:
            post(elsewhere)
        arm(bell)
        if next(left, None) is not None:
            post(elsewhere)

    monkeypatch.setattr(Doorbell, "arm", arm_while_rides_come)
    with leader(world):
        eventually(lambda: len(world.records()) == 10, "ten rides in the log")


def test_a_ride_that_does_not_ring_is_found_all_the_same(world: World) -> None:
    with leader(world):
        eventually(lambda: world.value(ARMED) == 1, "a leader that sleeps")
        take(world.connection, 5)
        eventually(lambda: world.staged() == 0, "the ride in the log")
