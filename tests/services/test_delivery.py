"""What a worker reads, has in flight, and looks after, on real servers."""

import time

import pytest

from consumers.receipts.round import Step
from rocket_rides.faults import InjectedCrash, crash_at
from tests.support.receipts import USUALLY, Staff, sent
from tests.support.receiver import Answer


def test_what_another_has_just_read_is_left_to_it(staff: Staff) -> None:
    sent(staff.world, 10)
    one, other = staff.worker("one"), staff.worker("other")
    assert one.read().made_group
    with pytest.raises(InjectedCrash), crash_at(Step.AFTER_READING):
        one.read()
    assert [other.read().claimed for _ in range(3)] == [0, 0, 0]
    assert staff.pending == 10


def test_there_are_never_more_in_flight_than_asked(staff: Staff) -> None:
    """And connections are kept."""
    sent(staff.world, 200)
    at_once: list[int] = []

    def answer(_: object) -> Answer:
        at_once.append(len(worker.delivery.in_flight))
        return Answer(delay=0.005)

    worker = staff.worker("one", USUALLY._replace(concurrency=4))
    staff.receiver.behaviour = answer
    worker.until(lambda: staff.outcomes() == 200)
    assert max(at_once) == 4
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
