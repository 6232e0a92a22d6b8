"""Rides that the log has lost get their receipts all the same, and no others do."""

from collections.abc import Callable

import pytest

from consumers.receipts import hand
from consumers.receipts.round import Step
from rocket_rides.faults import InjectedCrash, crash_at, listening
from rocket_rides.locks import Lock
from rocket_rides.terms import Term
from streamer.mend import mend
from tests.support.disasters import cut_newest, flush, restart_redis, staged_too_late
from tests.support.receipts import SOON, Staff, sent
from tests.support.receiver import ACCEPT, HANG, Answer, Request, refuse
from tests.support.world import World, drain, eventually, transaction

pytestmark = pytest.mark.stream_servers
# Two attempts of each have killed their workers.
SUSPECTED = """
    INSERT INTO receipts (ride_id, attempts, unfinished, due_at)
    SELECT unnest(%s::bigint[]), 2, 2, now()
"""
LOSSES: dict[str, Callable[[Staff], object]] = {
    "a flush": lambda staff: flush(staff.world),
    "a deleted stream": lambda staff: staff.world.log().start_anew(),
    "a destroyed group": lambda staff: staff.world.destroy_group(staff.group.name),
    "trimming past the group by the cap": lambda staff: staff.world.log().trim_to(0, exactly=True),
    "a log without its newest entries": lambda staff: cut_newest(staff.world),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_each_ride_gets_its_receipt_and_none_with_an_outcome_is_sent_again(
    staff: Staff, loss: str, impatient: None
) -> None:
    """30 are delivered, 10 are pending under the name of a worker that died, 30 are unread."""
    delivered = sent(staff.world, 30)
    one = staff.worker("one", SOON, concurrency=10)
    one.until(lambda: staff.outcomes() == 30 and staff.pending == 0)
    staff.receiver.behaviour = HANG
    pending = sent(staff.world, 10)
    one.until(lambda: len(staff.receiver.requests) == 40)
    unread = sent(staff.world, 30)
    one.die()
    staff.receiver.behaviour = ACCEPT
    LOSSES[loss](staff)
    other = staff.worker("other", SOON)
    other.until(lambda: staff.complete_to == 70 and staff.pending == 0)
    assert staff.outcomes() == 70
    assert {staff.receiver.rides[ride] for ride in delivered} == {1}
    assert {staff.receiver.rides[ride] for ride in pending} == {2}
    assert {staff.receiver.rides[ride] for ride in unread} == {1}
    new = sent(staff.world, 5)
    other.until(lambda: staff.outcomes() == 75)
    assert {staff.receiver.rides[ride] for ride in new} == {1}


def test_what_is_under_way_when_the_log_is_lost_is_not_sent_by_another_worker_too(
    staff: Staff,
) -> None:
    """Its lease is in Postgres."""
    rides = sent(staff.world, 10)
    staff.receiver.behaviour = Answer(delay=0.7)
    one, other = staff.worker("one", SOON), staff.worker("other", SOON)
    one.until(lambda: len(staff.receiver.requests) == 10)
    flush(staff.world)
    rounds = other.until(lambda: one.run_once() and staff.complete_to == 10)
    assert sum(done.made_group for done in rounds) <= 1
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


def test_what_is_under_way_is_not_lost_before_its_lease_is_over(staff: Staff) -> None:
    [ride_id] = sent(staff.world, 1)
    staff.receiver.behaviour = HANG
    one, other = staff.worker("one"), staff.worker("other")
    one.until(lambda: one.deliveries.under_way)
    flush(staff.world)
    other.run_once()  # makes the group
    assert other.intake.sweep.lost() == []
    staff.world.connection.execute("UPDATE receipts SET due_at = '-infinity'")
    assert other.intake.sweep.lost() == [ride_id]


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


def test_a_ride_that_is_read_between_two_looks_of_the_sweep_is_not_taken_for_lost(
    staff: Staff, impatient: None
) -> None:
    """Be it pending by then, or done with."""
    read, done = staff.worker("reads", concurrency=5), staff.worker("delivers", concurrency=5)
    read.run_once()  # makes the group
    rides = sent(staff.world, 5)
    staff.receiver.behaviour = HANG
    looked: list[object] = []

    def between(step: object) -> None:
        if step is not Step.WHILE_SWEEPING or looked:
            return
        looked.append(step)
        with listening(lambda _: None):
            read.until(lambda: len(staff.receiver.requests) == 5)
            staff.world.connection.execute("UPDATE receipts SET due_at = '-infinity'")  # no lease
            staff.receiver.behaviour = ACCEPT
            sent(staff.world, 5)
            done.until(lambda: staff.outcomes() == 5)

    sweeping = staff.worker("sweeps", SOON, concurrency=1)
    with listening(between):
        assert sweeping.intake.sweep.lost() == []
    assert looked
    staff.world.connection.execute("UPDATE receipts SET due_at = now() WHERE outcome IS NULL")
    assert sweeping.intake.sweep.lost() == []
    read.die()
    assert sweeping.intake.sweep.lost() == []
    assert staff.receiver.rides == dict.fromkeys([*rides, *range(6, 11)], 1)


def test_a_pending_entry_that_was_trimmed_is_acknowledged_and_its_ride_delivered(
    staff: Staff, impatient: None
) -> None:
    """By a worker that dies before any attempt, and by one that dies in the middle of it."""
    rides = sent(staff.world, 5)
    one = staff.worker("one", SOON)
    with pytest.raises(InjectedCrash), crash_at(Step.AFTER_READING):
        one.until(lambda: False)
    one.die()
    rides += sent(staff.world, 5)
    two = staff.worker("two", SOON)
    two.intake._look_at = float("inf")
    with pytest.raises(InjectedCrash), crash_at(Step.BEFORE_SENDING):
        two.until(lambda: False)
    two.die()
    assert staff.pending == 10
    staff.world.log().trim_to(0, exactly=True)
    staff.worker("other", SOON).until(lambda: staff.complete_to == 10 and staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


def test_one_worker_sweeps_at_a_time(staff: Staff) -> None:
    worker = staff.worker("one")
    worker.run_once()  # makes the group
    sent(staff.world, 1)
    flush(staff.world)
    worker.run_once()
    sweep = "SELECT pg_advisory_xact_lock(%s)"
    with transaction(staff.world) as other:
        other.execute(sweep, [int(Lock.SWEEP)])
        assert worker.intake.sweep.lost() is None
    assert worker.intake.sweep.lost() == [1]


def test_what_is_behind_a_page_of_foreign_entries_is_not_lost(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.receipts.sweep.PAGE", 2)
    worker = staff.worker("one")
    worker.run_once()  # makes the group
    stranger = Term("0123456789abcdef", 0)
    theirs = [(ride, f'{{"id": {ride}, "distance": 7}}') for ride in (1, 2)]
    staff.world.log().append(theirs, 0, stranger)
    sent(staff.world, 1)
    assert worker.intake.sweep.lost() == []


def test_what_is_before_a_foreign_entry_is_lost(staff: Staff) -> None:
    """Its number says nothing about ours."""
    worker = staff.worker("one")
    sent(staff.world, 1)
    flush(staff.world)
    worker.run_once()  # makes the group
    theirs = Term("0123456789abcdef", 0)
    staff.world.log().append([(1, '{"id": 1, "distance": 7}')], 0, theirs)
    assert worker.intake.sweep.lost() == [1]


def test_what_is_unread_or_in_hand_is_never_swept(staff: Staff, impatient: None) -> None:
    """Not even while its receiver fails, or a worker is behind."""
    sent(staff.world, 80)

    def fails_at_first(request: Request) -> Answer:
        fails = request.ride_id % 10 == 0 and staff.receiver.rides[request.ride_id] < 2
        return refuse(503) if fails else Answer(delay=0.01)

    staff.receiver.behaviour = fails_at_first
    one = staff.worker("one", SOON._replace(sweep_after=0), concurrency=4)
    rounds = one.until(lambda: staff.complete_to == 80)
    assert [ride for done in rounds for ride in done.swept] == []
    assert staff.outcomes() == 80


def test_what_is_lost_does_not_wait_for_the_suspects_before_it(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are tried one by one, and are as many as a hand holds three times over."""
    monkeypatch.setattr(hand, "MOST", 20)
    rides = sent(staff.world, 80)
    staff.world.log().redis.delete(staff.world.stream)
    staff.world.connection.execute(SUSPECTED, [rides[:60]])
    staff.receiver.behaviour = Answer(delay=0.02)
    worker = staff.worker("one", SOON)
    worker.until(lambda: {*rides[60:]} <= staff.receiver.rides.keys())
    assert len(staff.receiver.rides) < 40
    worker.until(lambda: staff.outcomes() == 80)


def test_a_mended_ride_gets_its_receipt_wherever_the_sweep_is(staff: Staff) -> None:
    """Be it mended in the middle of a sweep, which has not seen it, or after the sweep was past."""
    world = staff.world
    staged_too_late(world)
    world.connection.execute("DELETE FROM rides WHERE id = 2")  # as if it was not committed yet
    worker = staff.worker("one")
    worker.until(lambda: staff.outcomes() == 2)
    mended: list[int] = []

    def between(step: object) -> None:
        if step is Step.WHILE_SWEEPING and not mended:
            mended.extend(mend(world.connect())[0])

    with listening(between):
        assert worker.intake.sweep.lost() == []
    assert mended == [2]
    assert staff.complete_to == 0
    world.connection.execute(
        "INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (2, 30)"
    )
    worker = staff.worker("other", SOON)
    worker.until(lambda: staff.complete_to == 4)
    assert staff.receiver.rides == {1: 1, 2: 1, 4: 1}
    world.connection.execute("DELETE FROM receipts WHERE ride_id = 2")
    world.connection.execute("INSERT INTO staged_log_records VALUES (2, 'create', 'ride', '{}')")
    assert mend(world.connect())[0] == [2]
    worker.until(lambda: staff.complete_to == 4)
    assert staff.receiver.rides == {1: 1, 2: 2, 4: 1}


def test_a_hole_in_the_numbers_and_a_ride_that_waits_hold_up_nobody(
    staff: Staff, impatient: None
) -> None:
    """`complete_to` stays below the one that waits."""
    world = staff.world
    sent(world, 3)
    world.connection.execute("ALTER SEQUENCE log_position RESTART WITH 1000")
    sent(world, 3)
    staff.receiver.behaviour = lambda r: refuse(503) if r.ride_id == 1000 else ACCEPT
    worker = staff.worker("one", SOON._replace(attempts=1000))
    worker.until(lambda: staff.outcomes() == 5 and staff.complete_to == 999)
    sent(world, 10)
    worker.until(lambda: staff.outcomes() == 15)
    staff.receiver.behaviour = ACCEPT
    worker.until(lambda: staff.complete_to == 1012)
    assert sum(staff.receiver.rides.values()) == 15 + staff.receipt(1000).attempts


@pytest.mark.parametrize("is_lost", [False, True], ids=["pending", "lost"])
def test_no_receipt_waits_until_it_is_as_late_as_a_wrong_clock_said(
    staff: Staff, impatient: None, is_lost: bool
) -> None:
    """The clock of Postgres was an hour ahead when attempts failed."""
    rides = sent(staff.world, 2)
    staff.receiver.behaviour = refuse(503, Retry_After="1")
    one = staff.worker("one")
    one.until(lambda: staff.world.value(FAILED) == 2)
    one.die()
    staff.world.connection.execute("UPDATE receipts SET due_at = due_at + interval '1 hour'")
    if is_lost:
        staff.world.log().start_anew()
    staff.receiver.behaviour = ACCEPT
    staff.worker("two", SOON).until(lambda: staff.outcomes() == 2)
    assert staff.receiver.rides == dict.fromkeys(rides, 2)


FAILED = "SELECT count(*) FROM receipts WHERE unfinished = 0"
