"""What a worker reads, has in flight, and looks after, on real servers."""

import time

import pytest

from consumers.receipts.queue import Attempt
from consumers.receipts.round import Step
from rocket_rides.faults import InjectedCrash, crash_at
from tests.support.receipts import SOON, USUALLY, Colleague, Staff, sent
from tests.support.receiver import HANG, Answer


def test_what_another_has_just_read_is_left_to_it(staff: Staff) -> None:
    sent(staff.world, 10)
    one, other = staff.worker("one"), staff.worker("other")
    assert one.read().made_group
    with pytest.raises(InjectedCrash), crash_at(Step.AFTER_READING):
        one.read()
    assert [other.read().claimed for _ in range(3)] == [0, 0, 0]
    assert staff.pending == 10


def in_flight(worker: Colleague) -> list[int]:
    """The rides, once there is nothing more to take."""
    for _ in range(5):
        worker.deliver()
    return sorted(attempt.receipt.ride_id for attempt in worker.delivery.in_flight)


def test_there_are_never_more_in_flight_than_asked(staff: Staff) -> None:
    rides = sent(staff.world, 20)
    staff.receiver.behaviour = HANG
    worker = staff.worker("one", USUALLY._replace(concurrency=4))
    worker.until(lambda: worker.delivery.in_flight)
    assert in_flight(worker) == rides[:4]


def test_who_is_to_end_takes_nothing_more(staff: Staff) -> None:
    rides = sent(staff.world, 5)
    worker = staff.worker("one")
    worker.until(lambda: staff.world.value("SELECT count(*) FROM receipts") == 5, read_only=True)
    worker.delivery.end()
    assert in_flight(worker) == []
    assert [staff.receipt(ride_id).attempts for ride_id in rides] == [0] * 5
    assert staff.receiver.requests == []


def test_one_that_is_quarantined_is_in_flight_beside_others_and_no_second(staff: Staff) -> None:
    rides = sent(staff.world, 5)
    staff.receiver.behaviour = HANG
    worker = staff.worker("one", SOON._replace(lease=60, timeout=50))
    worker.until(lambda: staff.world.value("SELECT count(*) FROM receipts") == 5, read_only=True)
    later = "UPDATE receipts SET due_at = now() + interval '5 min' WHERE ride_id = ANY(%s)"
    staff.world.connection.execute(later, [rides[2:]])
    worker.until(lambda: in_flight(worker) == rides[:2])
    staff.world.connection.execute(
        "UPDATE receipts SET attempts = 2, unfinished = 2, due_at = now() WHERE ride_id = ANY(%s)",
        [rides[2:]],
    )
    worker.until(lambda: len(worker.delivery.in_flight) > 2)
    assert in_flight(worker) == rides[:3]


def test_what_comes_while_receipts_are_taken_is_not_forgotten(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next look takes it, and not only the one that looks at all."""
    monkeypatch.setattr("consumers.receipts.delivery.LOOK_AT_ALL_EVERY", 3600)
    worker = staff.worker("one")
    sent(staff.world, 1)
    worker.until(lambda: staff.outcomes() == 1)
    take = worker.queue.take

    async def take_and_be_told(room: int) -> list[Attempt]:
        taken = await take(room)
        worker.inbox.run_once()
        worker.delivery.has_news()
        worker.queue.take = take  # type: ignore[method-assign]
        return taken

    sent(staff.world, 1)
    worker.queue.take = take_and_be_told  # type: ignore[method-assign]
    worker.delivery.has_news()
    worker.until(lambda: staff.outcomes() == 2, patience=5, deliver_only=True)


def test_as_many_connections_are_kept_as_attempts_are_made_at_once(staff: Staff) -> None:
    sent(staff.world, 200)
    staff.receiver.behaviour = Answer(delay=0.005)
    worker = staff.worker("one", USUALLY._replace(concurrency=4))
    worker.until(lambda: staff.outcomes() == 200)
    assert sum(staff.receiver.rides.values()) == len(staff.receiver.rides) == 200
    assert staff.receiver.connections == 4


def test_a_sweep_gives_the_log_time_to_bring_what_was_sent(staff: Staff) -> None:
    sent(staff.world, 3)
    worker = staff.worker("one", USUALLY._replace(sweep_after=0.6))
    began = time.monotonic()
    worker.deliver()
    sent(staff.world, 3)
    while not (swept := worker.deliver().swept):
        pass
    assert time.monotonic() - began >= 0.6
    assert swept == [1, 2, 3]
