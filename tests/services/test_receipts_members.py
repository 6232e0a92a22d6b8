"""The workers share the reading and the work: they die, hang and wake up, and lose nothing."""

import pytest

from consumers.receipts.round import Step
from consumers.receipts.verdict import Kind
from rocket_rides import sessions
from rocket_rides.faults import InjectedCrash, crash_at
from rocket_rides.health import is_at_work
from tests.support.receipts import SOON, USUALLY, Staff, sent
from tests.support.receiver import ACCEPT, HANG, Answer
from tests.support.world import eventually

BOTH = pytest.mark.stream_servers


@pytest.mark.proves("receipts")
@BOTH
def test_what_a_dead_worker_had_read_is_claimed_and_by_its_own_name_at_once(staff: Staff) -> None:
    for name in ("one", "two"):
        sent(staff.world, 10)
        doomed = staff.worker(name)
        with pytest.raises(InjectedCrash), crash_at(Step.AFTER_READING):
            doomed.until(lambda: False)
        doomed.die()
    assert staff.pending == 20
    rounds = staff.worker("one").until(lambda: staff.outcomes() == 10)
    assert sum(done.claimed for done in rounds) == 10
    other = staff.worker("other", USUALLY._replace(claim_after=0.2))
    other.until(lambda: staff.outcomes() == 20 and staff.pending == 0)
    assert max(staff.receiver.rides.values()) == 1


def test_what_a_killed_process_had_in_flight_is_delivered_once_its_lease_has_run_out(
    staff: Staff,
) -> None:
    sent(staff.world, 20)
    staff.receiver.behaviour = HANG
    patient = {"CLAIM_AFTER": "3600", "SWEEP_AFTER": "3600", "RECEIPT_LEASE": "2"}
    one = staff.service("one", RECEIPT_TIMEOUT="1.9", **patient)
    eventually(lambda: len(staff.receiver.requests) == 20)
    staff.service("other", RECEIPT_TIMEOUT="1.9", **patient).says("delivers")
    staff.receiver.behaviour = ACCEPT
    one.kill()
    eventually(lambda: staff.outcomes() == 20)
    assert set(staff.receiver.rides.values()) == {2}
    assert len({request.webhook_id for request in staff.receiver.requests}) == 20


def test_a_process_that_was_stopped_and_continued_repeats_at_most_under_the_same_id(
    staff: Staff,
) -> None:
    rides = sent(staff.world, 40)
    staff.receiver.behaviour = HANG
    one = staff.service("one", RECEIPT_LEASE="1", RECEIPT_TIMEOUT="0.9")
    eventually(lambda: len(staff.receiver.requests) == 40)
    one.pause()
    staff.receiver.behaviour = ACCEPT
    staff.service("other")
    eventually(lambda: staff.outcomes() == 40)
    one.resume()
    new = sent(staff.world, 40)
    eventually(lambda: staff.outcomes() == 80 and staff.pending == 0)
    assert one.stop() == 0
    assert staff.outcomes() == 80
    assert set(staff.receiver.rides) == {*rides, *new}
    assert max(staff.receiver.rides.values()) <= 2
    assert len({request.webhook_id for request in staff.receiver.requests}) == 80


def test_nothing_is_sent_once_the_lease_has_run_out(staff: Staff) -> None:
    """The worker slept between taking a receipt and sending it."""
    [ride_id] = sent(staff.world, 1)
    sleeper = staff.worker("sleeper", SOON)
    sleeper.until(lambda: staff.world.value("SELECT count(*) FROM receipts"), read_only=True)
    [attempt] = sleeper.run(sleeper.queue.take(10))
    sleeper.run(sleeper.connection.execute("SELECT pg_sleep(0.6)"))
    assert sleeper.run(sleeper.delivery._verdict(attempt)).kind is Kind.STOPPED
    assert staff.receiver.requests == []
    staff.worker("other", SOON).until(lambda: staff.outcomes() == 1)
    sleeper.deliver(0)
    assert staff.receiver.rides == {ride_id: 1}
    assert staff.outcomes() == 1


def test_a_receipt_that_kills_its_worker_each_time_is_dead_and_the_rest_goes_on(
    staff: Staff, impatient: None
) -> None:
    """Whatever else was in flight with it is quarantined too, and proves innocent."""
    rides = sent(staff.world, 60)
    killer = rides[30]
    hang = {killer}
    staff.receiver.behaviour = lambda r: HANG if r.ride_id in hang else Answer(delay=0.05)
    limits = SOON._replace(attempts=5, lease=0.8, timeout=0.7)
    for worker in range(5):
        doomed = staff.worker(f"doomed{worker}", limits)
        doomed.until(lambda: len(staff.receiver.of(killer)) == worker + 1)  # noqa: B023
        doomed.die()
    last = staff.worker("last", limits)
    last.until(lambda: staff.outcomes() == 59 and staff.outcomes("dead") == 1)
    outcome, attempts, reason = staff.receipt(killer)
    assert (outcome, attempts) == ("dead", 5)
    assert "5 attempts" in str(reason)
    assert len(staff.receiver.of(killer)) == 5


def test_a_quarantined_receipt_does_not_wait_for_the_end_of_a_backlog(staff: Staff) -> None:
    """It is tried beside others, however many those are; one such at a time."""
    rides = sent(staff.world, 200)
    quarantined = rides[:3]
    worker = staff.worker("one", SOON._replace(concurrency=2, lease=5, timeout=4))
    worker.until(lambda: staff.world.value("SELECT count(*) FROM receipts") == 200, read_only=True)
    staff.world.connection.execute(
        "UPDATE receipts SET attempts = 2, unfinished = 2 WHERE ride_id = ANY(%s)", [quarantined]
    )
    at_once: list[int] = []

    def answer(_: object) -> Answer:
        in_flight = [attempt.receipt.ride_id for attempt in worker.delivery.in_flight]
        at_once.append(sum(ride_id in quarantined for ride_id in in_flight))
        return Answer(delay=0.01)

    staff.receiver.behaviour = answer
    worker.until(lambda: all(staff.receipt(ride).outcome for ride in quarantined))
    assert staff.outcomes() < len(rides) / 2
    assert max(at_once) == 1
    worker.until(lambda: staff.outcomes() == 200)


def test_two_processes_of_one_name_share_the_work(staff: Staff) -> None:
    both = [staff.service().says("one delivers receipts") for _ in range(2)]
    sent(staff.world, 100)
    eventually(lambda: staff.outcomes() == 100 and staff.pending == 0)
    assert is_at_work(staff.world.connection, sessions.receipts("one"))
    assert max(staff.receiver.rides.values()) == 1
    assert [process.stop() for process in both] == [0, 0]
    assert all("WARNING" not in process.output.read_text() for process in both)


def test_a_worker_goes_on_with_what_its_former_session_had(staff: Staff) -> None:
    """Its connections were cut, its deliveries were not: none is made twice."""
    rides = sent(staff.world, 10)
    staff.receiver.behaviour = Answer(delay=0.5)
    worker = staff.worker("one")
    worker.until(lambda: len(staff.receiver.requests) == 10)
    worker.end_session()
    worker.begin_session()
    worker.until(lambda: staff.outcomes() == 10 and staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)
