"""What a worker has in flight, over its sessions and at its end, on real servers."""

import time

import pytest

from consumers.receipts import delivery
from consumers.receipts.queue import Attempt, Queue
from tests.support.receipts import Colleague, Staff, sent
from tests.support.receiver import ACCEPT, HANG

EARLIER = "UPDATE receipts SET due_at = due_at - interval '10 seconds' WHERE outcome IS NULL"


def in_flight(worker: Colleague) -> list[int]:
    """The rides, once there is nothing more to take."""
    for _ in range(5):
        worker.delivery.has_news()
        worker.deliver()
    return sorted(attempt.receipt.ride_id for attempt in worker.delivery.in_flight)


def test_there_are_never_more_in_flight_than_asked(staff: Staff) -> None:
    rides = sent(staff.world, 20)
    staff.receiver.behaviour = HANG
    worker = staff.worker("one", receipt_concurrency=4)
    worker.until(lambda: worker.delivery.in_flight)
    assert in_flight(worker) == rides[:4]


def test_one_that_is_quarantined_is_in_flight_beside_others_and_no_second(
    staff: Staff, impatient: None
) -> None:
    """The next one comes at once when it has ended."""
    worker = staff.worker("one")
    rides = staff.queue_up(worker, 5)
    staff.receiver.behaviour = HANG
    later = "UPDATE receipts SET due_at = now() + interval '5 min' WHERE ride_id = ANY(%s)"
    staff.world.connection.execute(later, [rides[2:]])
    worker.until(lambda: in_flight(worker) == rides[:2])
    staff.receiver.behaviour = lambda r: ACCEPT if r.ride_id == rides[2] else HANG
    staff.world.connection.execute(
        "UPDATE receipts SET attempts = 2, unfinished = 2, due_at = now() WHERE ride_id = ANY(%s)",
        [rides[2:]],
    )
    worker.until(lambda: staff.receipt(rides[2]).outcome)
    assert in_flight(worker) == [*rides[:2], rides[3]]


def test_what_comes_while_receipts_are_taken_is_not_forgotten(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next look takes it, and not only one that looks back or at all."""
    monkeypatch.setattr(delivery, "LOOK_BACK_EVERY", 3600)
    monkeypatch.setattr(delivery, "LOOK_AT_ALL_EVERY", 3600)
    worker = staff.worker("one")
    sent(staff.world, 1)
    worker.until(lambda: staff.outcomes() == 1)
    take = worker.queue.take

    async def take_and_be_told(room: int, **how: bool) -> list[Attempt]:
        taken = await take(room, **how)
        worker.read()
        worker.queue.take = take  # type: ignore[method-assign]
        return taken

    sent(staff.world, 1)
    worker.queue.take = take_and_be_told  # type: ignore[method-assign]
    worker.delivery.has_news()
    worker.until(lambda: staff.outcomes() == 2, reading=False)


def test_what_fell_due_before_another_was_taken_is_found_soon(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a transaction which committed late; long before the next look at all."""
    assert delivery.LOOK_BACK_EVERY <= 1
    monkeypatch.setattr(delivery, "LOOK_AT_ALL_EVERY", 3600)
    worker = staff.worker("one")
    sent(staff.world, 1)
    worker.until(lambda: staff.outcomes() == 1)
    staff.queue_up(worker, 2)
    staff.world.connection.execute(EARLIER)
    worker.until(lambda: staff.outcomes() == 3)


def test_nothing_is_sent_once_the_lease_has_run_out(staff: Staff) -> None:
    """As after a worker slept between taking a receipt and sending it."""
    sleeper = staff.worker("sleeper")
    sleeper.queue = Queue(sleeper.connection, "sleeper", 10, lease=0)
    [ride_id] = staff.queue_up(sleeper, 1)
    sleeper.until(lambda: staff.receipt(ride_id).reason)
    assert staff.receipt(ride_id).reason == "the lease ran out before anything was sent"
    assert staff.world.value("SELECT attempts - excused FROM receipts") == 0
    assert staff.receiver.requests == []


def test_a_worker_that_is_to_end_says_so_of_what_it_cancels(staff: Staff) -> None:
    """Or two deployments, one after the other, would have all of it quarantined."""
    sent(staff.world, 20)
    staff.receiver.behaviour = HANG
    for name in ("one", "two"):
        worker = staff.worker(name)
        worker.until(lambda: len(worker.delivery.in_flight) == 20)  # noqa: B023
        worker.run(worker.delivery.finish(worker.queue, 0))
        found = staff.world.connection.execute(
            "SELECT DISTINCT unfinished, attempts - excused, lease, reason FROM receipts"
        )
        assert found.fetchall() == [(0, 0, None, "the worker was stopped")]


def test_a_sweep_gives_the_log_time_to_bring_what_was_sent(staff: Staff) -> None:
    *_, last = sent(staff.world, 3)
    worker = staff.worker("one", sweep_after=0.6)
    began = time.monotonic()
    worker.deliver()
    sent(staff.world, 3)
    found = "SELECT coalesce(max(ride_id), 0) FROM receipts"
    while not (newest := staff.world.value(found)):
        worker.deliver()
    assert time.monotonic() - began >= 0.6
    assert newest == last


def test_no_receipt_waits_until_it_is_as_late_as_a_wrong_clock_said(staff: Staff) -> None:
    """The clock of Postgres was an hour ahead."""
    worker = staff.worker("one")
    staff.queue_up(worker, 2)
    staff.world.connection.execute("UPDATE receipts SET due_at = now() + interval '1 hour'")
    worker.until(lambda: staff.outcomes() == 2)
