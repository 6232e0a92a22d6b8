"""Receipts' workers count what they deliver, give up and sweep up, in the same statements."""

import pytest

from consumers.receipts import dead
from consumers.receipts.round import Step
from rocket_rides.faults import InjectedCrash, crash_at
from tests.support.counts import WorkerCounts, worker_counts
from tests.support.disasters import flush
from tests.support.receipts import SOON, Staff, sent
from tests.support.receiver import ACCEPT, refuse
from tests.support.world import eventually

ALL = "SELECT coalesce(sum({0}), 0) FROM receipts_workers"


def test_each_outcome_is_counted_once_by_the_worker_that_wrote_it(staff: Staff) -> None:
    sent(staff.world, 10)
    staff.receiver.behaviour = lambda r: refuse(422) if r.ride_id in (3, 4) else ACCEPT
    staff.worker("one").until(lambda: staff.complete_to == 10 or staff.outcomes() == 8)
    sent(staff.world, 5)
    staff.worker("other").until(lambda: staff.outcomes() == 13)
    assert worker_counts(staff.world, "one") == WorkerCounts(8, 2)
    assert worker_counts(staff.world, "other") == WorkerCounts(5)


def test_what_is_to_be_sent_again_has_no_outcome_to_count(staff: Staff, impatient: None) -> None:
    sent(staff.world, 1)
    staff.receiver.behaviour = lambda r: refuse(503) if staff.receiver.rides[1] < 2 else ACCEPT
    staff.worker("one", SOON).until(lambda: staff.outcomes() == 1)
    assert staff.receipt(1).attempts == 3
    assert worker_counts(staff.world) == WorkerCounts(1)


def test_a_dead_letter_counts_again_when_it_is_replayed_and_decided(
    staff: Staff, impatient: None
) -> None:
    """Not for each attempt in between, while it is still called dead."""
    sent(staff.world, 1)
    staff.receiver.behaviour = refuse(422)
    worker = staff.worker("one", SOON)
    worker.until(lambda: staff.outcomes("dead") == 1)
    assert worker_counts(staff.world) == WorkerCounts(0, 1)
    dead.change(staff.world.connection, "replay", [1])
    staff.receiver.behaviour = lambda r: refuse(503) if staff.receiver.rides[1] < 2 else ACCEPT
    worker.until(lambda: staff.outcomes() == 1)
    assert worker_counts(staff.world) == WorkerCounts(1, 1)


@pytest.mark.parametrize("step", [None, Step.BEFORE_SENDING, Step.BEFORE_SAVING])
def test_a_ride_that_the_log_has_lost_counts_as_swept_once(
    staff: Staff, impatient: None, step: Step | None
) -> None:
    """When it comes into the inbox, and neither when it is retried nor by whoever comes next."""
    sent(staff.world, 4)
    flush(staff.world)
    staff.receiver.behaviour = lambda r: (
        refuse(503) if staff.receiver.rides[r.ride_id] < 2 else ACCEPT
    )
    one = staff.worker("one", SOON)
    if step:
        with pytest.raises(InjectedCrash), crash_at(step):
            one.until(lambda: False)
        assert worker_counts(staff.world, "one") == WorkerCounts(swept=4)
        one.die()
    staff.worker("other", SOON).until(lambda: staff.complete_to == 4)
    assert worker_counts(staff.world, "other") == WorkerCounts(4, swept=0 if step else 4)


def test_what_is_not_lost_is_not_swept(staff: Staff, impatient: None) -> None:
    """Nor is a dead letter that somebody wants sent again, or what another worker has left."""
    sent(staff.world, 4)
    staff.receiver.behaviour = lambda r: refuse(422) if r.ride_id == 1 else ACCEPT
    one = staff.worker("one", SOON)
    with pytest.raises(InjectedCrash), crash_at(Step.BEFORE_SENDING):
        one.until(lambda: False)
    one.die()
    other = staff.worker("other", SOON)
    other.until(lambda: staff.complete_to == 4)
    staff.receiver.behaviour = ACCEPT
    dead.change(staff.world.connection, "replay", [1])
    other.until(lambda: staff.outcomes() == 4)
    assert worker_counts(staff.world, "other") == WorkerCounts(4, 1)
    assert worker_counts(staff.world, "one") == WorkerCounts()


def test_workers_that_are_killed_count_every_outcome(staff: Staff) -> None:
    """By SIGKILL, in processes of their own, one after the other."""
    world, rides = staff.world, 600
    sent(world, rides)
    for number in range(3):
        done = rides * number // 4
        worker = staff.service("one", RECEIPT_CONCURRENCY="4")
        eventually(lambda done=done: staff.outcomes() > done)  # type: ignore[misc]
        worker.kill()
    assert 0 < staff.outcomes() < rides
    assert worker_counts(world).delivered == staff.outcomes()
    assert world.value(ALL.format("delivered")) == staff.outcomes()
