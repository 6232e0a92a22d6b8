"""Receipts while something is away, refuses, or comes back: nothing stops a worker for ever."""

import time

import pytest

from consumers.receipts import hand, outcomes, worker
from consumers.receipts.dead import change
from rocket_rides.faults import InjectedCrash, crash_at
from streamer.drain import Step as SendStep
from tests.support.disasters import flush
from tests.support.receipts import SOON, Colleague, Staff, sent
from tests.support.receiver import ACCEPT, HANG, Answer, refuse
from tests.support.world import drain


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


def test_a_sweep_looks_at_a_stretch_at_a_time_and_goes_on_at_once(
    staff: Staff, impatient: None
) -> None:
    """However many rides there are past one that waits."""
    rides = sent(staff.world, 60)
    one = staff.worker("one", SOON._replace(sweep_after=3600))
    one.run_once()
    flush(staff.world)
    one.intake.sweep.stretch = 7
    one.intake._sweep_at = 0
    rounds = one.until(lambda: staff.outcomes() == 60)
    assert max(len(done.swept) for done in rounds) == 7
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


def test_an_outcome_that_is_written_twice_stops_nobody(staff: Staff, impatient: None) -> None:
    """Postgres' reply to the first was lost. Nobody took the request, so no attempt counts."""
    [ride_id] = sent(staff.world, 1)
    staff.receiver.goes_away()
    worker = staff.worker("one", SOON)
    worker.until(lambda: worker.deliveries.unsaved)
    outcomes.save(worker.connection, "one", worker.deliveries.unsaved.values(), 10)
    worker.run_once()
    assert staff.receipt(ride_id)[:2] == (None, 0)
    staff.receiver.comes_back()
    worker.until(lambda: staff.outcomes() == 1)
    assert staff.receipt(ride_id).attempts == 1


def test_an_outcome_that_postgres_refuses_holds_up_no_other(
    staff: Staff, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    """It is tried again, like an attempt that nobody wrote the end of."""
    monkeypatch.setattr(worker, "UNWRITTEN_DELAY", 0.01)
    rides = sent(staff.world, 10)
    bad = rides[4]
    staff.world.connection.execute(
        f"ALTER TABLE receipts ADD CONSTRAINT odd CHECK (outcome IS NULL OR ride_id <> {bad})"
    )
    one = staff.worker("one", SOON)
    rounds = one.until(lambda: staff.outcomes() == 9 and staff.receiver.rides[bad] > 1)
    refused = {ride: why for done in rounds for ride, why in done.unwritten.items()}
    assert list(refused) == [bad]
    assert "odd" in refused[bad]
    staff.world.connection.execute("ALTER TABLE receipts DROP CONSTRAINT odd")
    one.until(lambda: staff.outcomes() == 10 and staff.pending == 0)
    assert set(staff.receiver.rides) == set(rides)


def test_a_worker_with_empty_hands_still_asks_a_receiver_that_was_down(
    staff: Staff, impatient: None
) -> None:
    """What it had is lost with the log, or is its former session's, or is to be sent again."""
    rides = sent(staff.world, 20)
    staff.receiver.behaviour = refuse(503)

    def until_paused(one: Colleague) -> None:
        one.until(lambda: one.deliveries.breaker.is_open and not one.deliveries.under_way)

    def has_all(one: Colleague) -> None:
        staff.receiver.behaviour = ACCEPT
        one.until(lambda: staff.outcomes() == len(rides))

    one = staff.worker("one", SOON, concurrency=20)
    until_paused(one)
    one.connection.close()
    one = staff.session("one", one.deliveries, SOON)
    has_all(one)
    staff.receiver.behaviour = refuse(503)
    rides += sent(staff.world, 20)
    until_paused(one)
    flush(staff.world)
    one.until(lambda: one.in_hand == 0)
    has_all(one)
    staff.receiver.behaviour = refuse(503)
    rides += sent(staff.world, 20)
    one = staff.session("few", one.deliveries, SOON._replace(attempts=1))
    one.until(lambda: staff.outcomes("dead") == 20)
    assert one.deliveries.breaker.is_open
    change(staff.world.connection, "replay", [], every=True)
    has_all(one)


def test_what_came_of_an_attempt_before_a_replay_does_not_undo_the_replay(staff: Staff) -> None:
    """A worker that was stopped brings home a refusal that another one has long had, too."""
    [ride_id] = sent(staff.world, 1)
    staff.receiver.behaviour = Answer(404)
    stopped, other = staff.worker("one"), staff.worker("other")
    stopped.until(lambda: stopped.deliveries.unsaved)
    [ended] = stopped.deliveries.unsaved.values()
    outcomes.save(other.connection, "other", [ended], 10)
    assert staff.receipt(ride_id).outcome == "dead"
    assert change(staff.world.connection, "replay", [ride_id]) == [ride_id]
    staff.receiver.behaviour = ACCEPT
    stopped.until(lambda: staff.pending == 0 and staff.outcomes() == 1)
    assert staff.receiver.rides == {ride_id: 2}


def test_no_entry_is_done_with_before_its_ride_has_an_outcome(
    staff: Staff, impatient: None
) -> None:
    """Its row was lost in a restore, after the attempt."""
    [ride_id] = sent(staff.world, 1)
    one = staff.worker("one")
    one.until(lambda: one.deliveries.unsaved)
    staff.world.connection.execute("DELETE FROM receipts")
    one.until(lambda: staff.pending == 0)
    assert staff.receipt(ride_id).outcome == "delivered"


def test_whoever_is_back_first_after_a_restart_of_postgres_leaves_the_others_theirs(
    staff: Staff,
) -> None:
    """All locks are gone with the server. A member that stays away is another matter."""
    rides = sent(staff.world, 10)
    staff.receiver.behaviour = Answer(delay=0.4)
    late, first = staff.worker("late"), staff.worker("first")
    late.until(lambda: len(staff.receiver.requests) == 10)
    late.connection.close()
    first.connection.close()
    first = staff.session("first", first.deliveries)
    first.intake.membership.gone_after = 3600  # however long the other takes to come back
    rounds = [first.run_once() for _ in range(3)]
    late = staff.session("late", late.deliveries)

    def are_delivered() -> bool:
        rounds.append(first.run_once())
        return staff.outcomes() == 10

    late.until(are_delivered)
    assert sum(done.claimed for done in rounds) == 0
    assert staff.receiver.rides == dict.fromkeys(rides, 1)
    staff.receiver.behaviour = HANG
    sent(staff.world, 1)
    late.until(lambda: len(staff.receiver.requests) == 11)
    late.die()
    staff.receiver.behaviour = ACCEPT
    first.intake.membership.gone_after = 1.0
    first.until(lambda: staff.outcomes() == 11)


def test_a_worker_that_holds_all_it_can_waits_for_the_streamer_to_commit(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not spin."""
    monkeypatch.setattr(hand, "MOST", 20)
    world = staff.world
    rides = world.take(*range(1, 31))
    with pytest.raises(InjectedCrash), crash_at(SendStep.AFTER_SEND):
        world.streamer().run_once()
    one = staff.worker("one")
    one.until(lambda: staff.pending == 20)
    began = time.monotonic()
    for _ in range(3):
        one.run_once(wait=0.2)
    assert time.monotonic() - began > 0.5
    drain(world.streamer())
    one.until(lambda: staff.outcomes() == 30 and staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


def test_a_worker_that_is_to_end_writes_down_what_has_ended_before(staff: Staff) -> None:
    sent(staff.world, 1)
    staff.receiver.behaviour = Answer(delay=0.2)
    one = staff.worker("one")
    one.until(lambda: one.deliveries.under_way)
    while not one.deliveries.unsaved:
        one.deliveries.wait(1)
    one.finish(0)
    assert (staff.outcomes(), staff.pending) == (1, 0)


def test_a_worker_that_is_to_end_without_redis_writes_down_what_was_delivered(
    staff: Staff,
) -> None:
    """The entries are another worker's to acknowledge."""
    rides = sent(staff.world, 5)
    staff.receiver.behaviour = Answer(delay=0.2)
    one = staff.worker("one")
    one.until(lambda: one.deliveries.under_way)
    staff.world.redis.stop()
    try:
        done = one.finish(5)
    finally:
        staff.world.redis.start()
    assert sorted(done.delivered) == rides
    one.die()
    staff.worker("other", SOON).until(lambda: staff.pending == 0 and staff.complete_to == 5)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)
