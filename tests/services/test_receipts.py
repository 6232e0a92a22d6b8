"""Receipts: each ride's is delivered, whatever the receiver answers and wherever a worker ends."""

import json
import time

import psycopg
import pytest

from lab.chaos.backup import Backup
from rocket_rides import sessions
from rocket_rides.health import is_at_work
from tests.support.clusters import restore
from tests.support.entries import named
from tests.support.receipts import SOON, STEPS, Staff, crash, sent
from tests.support.receipts import staff as staff_of
from tests.support.receiver import (
    ACCEPT,
    Answer,
    Receiver,
    refuse,
)
from tests.support.world import World, drain, eventually
from unified_log.faults import InjectedCrash, crash_at
from unified_log.streamer.drain import BatchStep

WEBHOOK_ID = "SELECT webhook_id(salt, rides.id, distance, created_at) FROM rides, receipts_state"


@pytest.mark.parametrize("names", [("one", "other"), ("one", "one")])
def test_processes_share_the_work_whether_or_not_they_have_one_name(
    staff: Staff, names: tuple[str, str]
) -> None:
    world = staff.world
    world.service("streamer").says("leading")
    workers = [staff.service(name).says(f"{name} delivers receipts") for name in names]
    rides = [ride for _ in range(10) for ride in world.take(*range(1, 11))]
    eventually(lambda: staff.outcomes() == 100)
    eventually(lambda: staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)
    assert is_at_work(world.connection, sessions.receipts("one"))
    assert [worker.stop() for worker in workers] == [0, 0]
    for worker in workers:
        assert "WARNING" not in worker.output.read_text()


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_loses_no_receipt(staff: Staff, step: str, impatient: None) -> None:
    rides = sent(staff.world, 20)
    worker = staff.worker("one", **SOON)
    with crash(step):
        worker.until(lambda: False)
    worker.die()
    staff.leases_run_out()
    other = staff.worker("other", **SOON)
    other.until(lambda: staff.outcomes() == staff.complete_to == 20 and staff.pending == 0)
    sent_before = step == "after attempts ended"
    for ride_id in rides:
        requests = staff.receiver.of(ride_id)
        assert len(requests) <= (2 if sent_before else 1)
        assert len({request.webhook_id for request in requests}) == 1
        assert staff.receipt(ride_id).attempts - len(requests) in (
            (0, 1) if step == "after attempts were written" else (0,)
        )


def test_a_receiver_that_is_down_for_long_makes_nothing_dead_and_is_asked_rarely(
    staff: Staff, impatient: None
) -> None:
    """Whatever it fails with, few receipts are tried; and all are read."""
    rides = sent(staff.world, 500)
    staff.receiver.behaviour = refuse(500)
    worker = staff.worker("one")
    worker.until(lambda: worker.delivery.breaker.is_open)
    until = time.monotonic() + 0.5
    worker.until(lambda: time.monotonic() > until)
    assert worker.delivery.breaker.is_open
    assert len(staff.receiver.requests) < 100
    staff.receiver.goes_away()
    until = time.monotonic() + 0.5
    worker.until(lambda: time.monotonic() > until)
    queued = "SELECT count(*) FROM receipts"
    worker.until(lambda: staff.world.value(queued) == len(rides) and staff.pending == 0)
    staff.receiver.behaviour = ACCEPT
    staff.receiver.comes_back()
    worker.until(lambda: staff.outcomes() == 500)
    assert staff.world.value("SELECT max(attempts) FROM receipts") <= 4


def test_sigterm_in_the_middle_of_deliveries_loses_none_and_repeats_none(staff: Staff) -> None:
    sent(staff.world, 20)
    staff.receiver.behaviour = Answer(delay=0.5)
    worker = staff.service()
    eventually(lambda: len(staff.receiver.requests) == 20)
    assert worker.stop() == 0
    assert staff.outcomes() == 20
    assert staff.pending == 0
    assert max(staff.receiver.rides.values()) == 1


def test_an_outage_of_our_own_makes_nothing_dead_and_repeats_nothing(
    staff: Staff, impatient: None
) -> None:
    """Postgres takes attempts and refuses outcomes, as on a full disk, for some sessions."""
    sent(staff.world, 10)
    staff.world.connection.execute(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE disk_full; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON receipts FOR EACH ROW
        WHEN (NEW.lease IS NULL) EXECUTE FUNCTION refuse()
        """,
        prepare=False,
    )
    worker = staff.worker("one")
    for _ in range(3):
        with pytest.raises(psycopg.errors.DiskFull):
            worker.until(lambda: False)
        worker.end_session()
        worker.begin_session()
    staff.world.connection.execute("DROP TRIGGER refuse ON receipts")
    worker.until(lambda: staff.outcomes() == 10)
    assert set(staff.receiver.rides.values()) == {1}
    assert staff.world.value("SELECT max(attempts) FROM receipts") == 1


def test_nothing_is_sent_before_the_streamer_has_committed_it(staff: Staff) -> None:
    """Its entry has been read and acknowledged by then: it is in the inbox."""
    world = staff.world
    [ride_id] = world.take(5)
    with pytest.raises(InjectedCrash), crash_at(BatchStep.AFTER_SEND):
        world.streamer().run_once()
    worker = staff.worker("one")
    worker.until(lambda: world.value("SELECT count(*) FROM receipts") == 1)
    assert staff.pending == 0
    until = time.monotonic() + 0.2
    worker.until(lambda: time.monotonic() > until)
    assert staff.receiver.requests == []
    drain(world.streamer())
    worker.until(lambda: staff.outcomes() == 1 and staff.pending == 0)
    assert staff.receiver.rides == {ride_id: 1}


def test_what_is_no_record_or_about_no_ride_of_ours_is_acknowledged_and_never_sent(
    staff: Staff,
) -> None:
    """What is sent is what `rides` says, not what the log does."""
    world = staff.world
    [ride_id] = sent(world, 1)
    add = world.log().redis.xadd
    add(world.stream, {"data": "nonsense", "prev": "0"})
    add(world.stream, named(2, '{"id": 2, "distance": 666}', 1, "f" * 16))
    add(world.stream, named(1, '{"id": 1, "distance": 666}', 0, "f" * 16))
    worker = staff.worker("one")
    worker.until(lambda: staff.pending == 0 and staff.outcomes() == 1)
    kept = "SELECT reason FROM malformed_entries WHERE consumer_kind = 'receipts'"
    [[reason]] = world.connection.execute(kept).fetchall()
    assert reason == "no field 'id'"
    counted = "SELECT entries_ignored, entries_malformed FROM receipts_workers"
    assert world.connection.execute(counted).fetchone() == (2, 1)
    [request] = staff.receiver.requests
    assert (request.ride_id, json.loads(request.body)["data"]["distance"]) == (ride_id, 1)


def test_databases_with_equal_rides_give_them_different_ids(world: World) -> None:
    """Each has a salt of its own."""
    world.take(5)
    ids = set()
    for digit in "01":
        world.connection.execute("UPDATE receipts_state SET salt = repeat(%s, 32)", [digit])
        row = world.connection.execute(WEBHOOK_ID).fetchone()
        ids.add(row)
    assert len(ids) == 2


def test_rides_of_a_history_that_was_lost_are_told_apart_by_their_id(
    own_world: World, receiver: Receiver
) -> None:
    """Rides 3 to 5 are lost with a restore, and others take their numbers."""
    world = own_world
    with staff_of(world, receiver) as staff:
        rides = sent(world, 2)
        worker = staff.worker("one", **SOON)
        worker.until(lambda: staff.outcomes() == 2)
        backup = Backup(world.postgres, "first")
        rides += sent(world, 3)
        worker.until(lambda: staff.outcomes() == 5)
        restore(world, backup, recovery_signal=True)
        worker.die()
        sent(world, 3)
        worker = staff.worker("one", **SOON)
        worker.until(lambda: staff.outcomes() == 5 and staff.pending == 0)
        assert receiver.rides == dict(zip(rides, [1, 1, 2, 2, 2], strict=True))
        ids = [{request.webhook_id for request in receiver.of(ride)} for ride in rides]
        assert [len(of_ride) for of_ride in ids] == [1, 1, 2, 2, 2]
