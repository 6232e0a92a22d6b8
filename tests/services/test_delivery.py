"""What a worker has in flight and how it looks after the queue, on real servers."""

import time

from tests.support.receipts import USUALLY, Staff, sent
from tests.support.receiver import Answer


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
