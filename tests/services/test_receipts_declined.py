"""A receiver that declines: everything for a while, or some receipts among others."""

import logging

import pytest

from consumers.receipts import refusals
from consumers.receipts.breaker import TRIP
from consumers.receipts.refusals import SEVERAL
from rocket_rides.settings import Settings
from tests.support.receipts import Staff, sent
from tests.support.receiver import ACCEPT, Answer, refuse

RIDES = 300


def test_a_receiver_that_declines_everything_for_a_while_gets_every_receipt_afterwards(
    staff: Staff, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a wrong deployment. It is asked about a few of them, and nearly all for free."""
    monkeypatch.setattr(refusals, "EXCUSED_FOR", 1.0)
    caplog.set_level(logging.WARNING)
    worker = staff.worker("one")
    rides = staff.queue_up(worker, RIDES)
    staff.receiver.behaviour = refuse(404)
    asked = staff.receiver.requests
    worker.until(lambda: len(asked) > TRIP and worker.delivery.breaker.pause > 1)
    told = "the receiver takes no receipts: status 404; trying again until it works"
    assert told in caplog.messages
    assert len(asked) < RIDES / 2
    counted = "SELECT count(*) FROM receipts WHERE attempts > excused AND lease IS NULL"
    assert staff.world.value(counted) < SEVERAL
    asked.clear()
    staff.receiver.behaviour = ACCEPT
    worker.until(lambda: staff.outcomes() + staff.outcomes("dead") == RIDES)
    assert staff.outcomes("dead") == 0
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


def test_one_that_is_declined_among_others_is_dead_soon(staff: Staff) -> None:
    """At the first attempt where the answer is 410; else only at another one, by any worker."""
    workers = [staff.worker(name) for name in ("one", "two")]
    declined, gone = sent(staff.world, 2)
    answers = {declined: Answer(422, body=b"no such customer"), gone: refuse(410)}
    staff.receiver.behaviour = lambda r: answers.get(r.ride_id, ACCEPT)

    def is_decided() -> bool:
        sent(staff.world, 2)  # others come
        for worker in workers:
            worker.read()
            worker.deliver()
        return staff.outcomes("dead") == 2

    workers[0].until(is_decided)
    outcome, attempts, reason = staff.receipt(declined)
    assert (outcome, reason) == ("dead", "status 422: no such customer")
    assert 2 <= attempts == staff.receiver.rides[declined] < Settings().receipt_attempts
    assert staff.receipt(gone) == ("dead", 1, "status 410")
