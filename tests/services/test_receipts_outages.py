"""Receipts while something is away, refuses, or comes back: nothing stops a worker for ever."""

import time

import pytest

from consumers.receipts import outcomes
from tests.support.disasters import flush
from tests.support.receipts import SOON, Staff, sent
from tests.support.receiver import ACCEPT, Answer, refuse


def test_an_answer_that_asks_for_time_is_written_down_beside_any_other(
    staff: Staff, impatient: None
) -> None:
    """Two attempts end in one round."""
    [first, second] = sent(staff.world, 2)
    asks = refuse(503, Retry_After="1")
    staff.receiver.behaviour = lambda request: asks if request.ride_id == first else refuse(503)
    worker = staff.worker("one")
    worker.until(lambda: worker.deliveries.under_way or worker.deliveries.unsaved)
    while worker.deliveries.under_way:
        worker.deliveries.wait(5)
    assert len(worker.deliveries.unsaved) == 2
    worker.run_once()
    assert {str(staff.receipt(ride).reason) for ride in (first, second)} == {"status 503"}


def test_more_lost_rides_than_a_worker_remembers_get_their_receipts(
    staff: Staff, impatient: None
) -> None:
    rides = sent(staff.world, 60)
    flush(staff.world)
    worker = staff.worker("one", SOON._replace(sweep_after=0), concurrency=8)
    worker.intake.sweep.most_open = 20
    worker.until(lambda: staff.complete_to == rides[-1])
    assert staff.outcomes() == 60
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


