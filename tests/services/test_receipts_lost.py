"""Rides that the log has lost get their receipts all the same, and no others do."""

from collections.abc import Callable

import pytest

from consumers.receipts.round import Step
from rocket_rides.faults import InjectedCrash, crash_at
from streamer.mend import mend
from tests.support.disasters import cut_newest, flush, restart_redis, staged_too_late
from tests.support.receipts import SOON, USUALLY, Staff, sent
from tests.support.receiver import ACCEPT, HANG, Answer, Request, refuse
from tests.support.world import World, drain, eventually

pytestmark = pytest.mark.stream_servers
LOSSES: dict[str, Callable[[Staff], object]] = {
    "a flush": lambda staff: flush(staff.world),
    "a deleted stream": lambda staff: staff.world.log().start_anew(),
    "a destroyed group": lambda staff: staff.world.destroy_group(staff.group),
    "trimming past the group by the cap": lambda staff: staff.world.log().trim_to(0, exactly=True),
    "a log without its newest entries": lambda staff: cut_newest(staff.world),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_each_ride_gets_its_receipt_and_none_with_an_outcome_is_sent_again(
    staff: Staff, loss: str, impatient: None
) -> None:
    """30 are delivered, 10 in flight when their worker dies, 10 read by it, and 20 unread."""
    delivered = sent(staff.world, 30)
    one = staff.worker("one", USUALLY._replace(lease=1))
    one.until(lambda: staff.outcomes() == 30 and staff.pending == 0)
    staff.receiver.behaviour = HANG
    in_flight = sent(staff.world, 10)
    one.until(lambda: len(staff.receiver.requests) == 40)
    lost = sent(staff.world, 10)
    with pytest.raises(InjectedCrash), crash_at(Step.AFTER_READING):
        one.read()
    lost += sent(staff.world, 20)
    one.die()
    staff.receiver.behaviour = ACCEPT
    LOSSES[loss](staff)
    other = staff.worker("other", SOON)
    other.until(lambda: staff.complete_to == 70 and staff.pending == 0)
    assert staff.outcomes() == 70
    assert {staff.receiver.rides[ride] for ride in delivered} == {1}
    assert {staff.receiver.rides[ride] for ride in in_flight} == {2}
    assert {staff.receiver.rides[ride] for ride in lost} == {1}
    new = sent(staff.world, 5)
    other.until(lambda: staff.outcomes() == 75)
    assert {staff.receiver.rides[ride] for ride in new} == {1}


def test_what_is_under_way_when_the_log_is_lost_is_not_sent_by_another_worker_too(
    staff: Staff,
) -> None:
    """Its lease is in Postgres."""
    rides = sent(staff.world, 10)
    staff.receiver.behaviour = Answer(delay=0.7)
    patient = SOON._replace(lease=20, timeout=10)
    one, other = staff.worker("one", patient), staff.worker("other", patient)
    one.until(lambda: len(staff.receiver.requests) == 10)
    flush(staff.world)
    rounds = other.until(lambda: one.read() and one.deliver() and staff.complete_to == 10)
    assert sum(done.made_group for done in rounds) <= 1
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


@pytest.mark.parametrize("disaster", [flush, restart_redis])
def test_a_process_that_waits_for_entries_goes_on_after(
    staff: Staff, disaster: Callable[[World], None]
) -> None:
    world = staff.world
    sent(world, 3)
    workers = [
        staff.service(name, SWEEP_AFTER="0.5").says(f"{name} delivers receipts")
        for name in ("one", "other")
    ]
    eventually(lambda: staff.outcomes() == 3)
    disaster(world)
    world.take(1, 2)
    drain(world.streamer())
    eventually(lambda: staff.outcomes() == 5)
    eventually(lambda: staff.complete_to == 5)
    assert max(staff.receiver.rides.values()) == 1
    assert all(worker.process.poll() is None for worker in workers)


def test_a_pending_entry_that_was_trimmed_is_acknowledged_and_its_ride_delivered(
    staff: Staff, impatient: None
) -> None:
    """Be they in the inbox or not: two workers died on the way."""
    rides = []
    for name, step in (("one", Step.AFTER_READING), ("two", Step.BEFORE_ACKNOWLEDGING)):
        rides += sent(staff.world, 5)
        doomed = staff.worker(name)
        with pytest.raises(InjectedCrash), crash_at(step):
            doomed.until(lambda: False)
        doomed.die()
    assert staff.pending == 10
    staff.world.log().trim_to(0, exactly=True)
    staff.worker("other", SOON).until(lambda: staff.complete_to == 10 and staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


def test_what_the_log_brings_in_time_is_never_swept(staff: Staff, impatient: None) -> None:
    """Not even while its receiver fails, or deliveries are behind."""
    sent(staff.world, 80)

    def fails_at_first(request: Request) -> Answer:
        fails = request.ride_id % 10 == 0 and staff.receiver.rides[request.ride_id] < 2
        return refuse(503) if fails else Answer(delay=0.01)

    staff.receiver.behaviour = fails_at_first
    one = staff.worker("one", SOON._replace(concurrency=4))
    rounds = one.until(lambda: staff.complete_to == 80)
    assert [ride for done in rounds for ride in done.swept] == []
    assert staff.outcomes() == 80


def test_a_mended_ride_gets_its_receipt_although_the_sweep_was_past_it(staff: Staff) -> None:
    world = staff.world
    staged_too_late(world)
    worker = staff.worker("one", SOON)
    world.connection.execute("DELETE FROM rides WHERE id = 2")  # as if it was not committed yet
    worker.until(lambda: staff.complete_to == 4)
    world.connection.execute(
        "INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (2, 30)"
    )
    assert mend(world.connect())[0] == [2]
    assert staff.complete_to == 1
    worker.until(lambda: staff.complete_to == 4)
    assert staff.receiver.rides == {1: 1, 2: 1, 4: 1}


def test_a_hole_in_the_numbers_and_a_ride_that_waits_hold_up_nobody(
    staff: Staff, impatient: None
) -> None:
    """`complete_to` stays below the one that waits."""
    world = staff.world
    sent(world, 3)
    world.connection.execute("ALTER SEQUENCE log_position RESTART WITH 1000")
    sent(world, 3)
    staff.receiver.behaviour = lambda r: refuse(503) if r.ride_id == 1000 else ACCEPT
    worker = staff.worker("one", SOON._replace(attempts=100))
    worker.until(lambda: staff.outcomes() == 5 and staff.complete_to == 999)
    sent(world, 10)
    worker.until(lambda: staff.outcomes() == 15)
    staff.receiver.behaviour = ACCEPT
    worker.until(lambda: staff.complete_to == 1012)
    assert sum(staff.receiver.rides.values()) == 15 + staff.receipt(1000).attempts


def test_no_receipt_waits_until_it_is_as_late_as_a_wrong_clock_said(
    staff: Staff, impatient: None
) -> None:
    """The clock of Postgres was an hour ahead when attempts failed."""
    rides = sent(staff.world, 2)
    staff.receiver.behaviour = refuse(503, Retry_After="1")
    one = staff.worker("one")
    one.until(lambda: staff.world.value(FAILED) == 2)
    one.die()
    staff.world.connection.execute("UPDATE receipts SET due_at = due_at + interval '1 hour'")
    staff.receiver.behaviour = ACCEPT
    staff.worker("two", SOON).until(lambda: staff.outcomes() == 2)
    assert staff.receiver.rides == dict.fromkeys(rides, 2)


FAILED = "SELECT count(*) FROM receipts WHERE unfinished = 0"
