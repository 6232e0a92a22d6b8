"""The workers as members of one group: they die, hang, wake up, restart, and lose nothing."""

import pytest

from consumers.receipts import intake
from consumers.receipts.membership import Membership
from consumers.receipts.round import Step
from rocket_rides import sessions
from rocket_rides.faults import InjectedCrash, crash_at
from rocket_rides.health import is_at_work
from tests.support.disasters import set_redis_clock_back
from tests.support.receipts import USUALLY, Colleague, Staff, sent
from tests.support.receiver import ACCEPT, HANG, Answer, refuse
from tests.support.world import eventually

BOTH = pytest.mark.stream_servers


def with_all_under_way(staff: Staff, name: str, rides: int) -> Colleague:
    """A worker whose receiver hangs."""
    staff.receiver.behaviour = HANG
    worker = staff.worker(name, USUALLY._replace(claim_after=0.2))
    worker.until(lambda: len(staff.receiver.requests) == rides)
    staff.receiver.behaviour = ACCEPT
    return worker


def owners(staff: Staff) -> set[str]:
    return {pending.member for pending in staff.group.pending(1000)}


@BOTH
def test_what_a_dead_worker_had_is_claimed_at_once_whatever_redis_clock_says(staff: Staff) -> None:
    """Its entries were delivered in an hour, by a clock that was set back since."""
    rides = sent(staff.world, 20)
    with_all_under_way(staff, "one", 20).die()
    set_redis_clock_back(staff.world)
    assert {entry.idle_ms for entry in staff.group.pending(100)} == {0}
    rounds = staff.worker("other").until(lambda: staff.outcomes() == 20 and staff.pending == 0)
    assert sum(done.claimed for done in rounds) == 20
    assert staff.receiver.rides == dict.fromkeys(rides, 2)
    assert len({request.webhook_id for request in staff.receiver.requests}) == 20
    assert [member.name for member in staff.group.members()] == ["other"]


def test_what_a_killed_process_had_is_delivered_by_the_others_within_seconds(staff: Staff) -> None:
    sent(staff.world, 20)
    staff.receiver.behaviour = HANG
    one = staff.service("one", RECEIPT_TIMEOUT="60", CLAIM_AFTER="3600", SWEEP_AFTER="3600")
    eventually(lambda: len(staff.receiver.requests) == 20)
    other = staff.service("other", CLAIM_AFTER="3600", SWEEP_AFTER="3600").says("delivers")
    staff.receiver.behaviour = ACCEPT
    one.kill()
    eventually(lambda: staff.outcomes() == 20, patience=20)
    other.says("other took over 20 entries")
    assert max(staff.receiver.rides.values()) == 2


@BOTH
def test_a_worker_that_was_stopped_gives_up_what_others_have_claimed(staff: Staff) -> None:
    """Its heartbeat does not steal them back, and it makes no attempt that it had planned."""
    rides = sent(staff.world, 5)
    staff.receiver.behaviour = refuse(503)
    patience = USUALLY._replace(claim_after=0.2)
    one = staff.worker("one", patience)
    one.until(lambda: staff.world.value("SELECT count(reason) FROM receipts") == 5)
    staff.receiver.behaviour = ACCEPT
    other = staff.worker("other", patience)
    other.until(lambda: owners(staff) == {"other"})
    one.intake.membership.claim_after = 3600  # however slow the other is
    done = one.run_once()
    assert (done.given_up, one.in_hand) == (5, 0)
    assert owners(staff) == {"other"}
    other.until(lambda: one.run_once() and staff.outcomes() == 5 and staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 2)


def test_a_process_that_was_stopped_and_continued_repeats_at_most_under_the_same_id(
    staff: Staff,
) -> None:
    rides = sent(staff.world, 40)
    staff.receiver.behaviour = HANG
    one = staff.service("one", CLAIM_AFTER="0.5", RECEIPT_TIMEOUT="2")
    eventually(lambda: len(staff.receiver.requests) == 40)
    staff.receiver.behaviour = ACCEPT
    one.pause()
    staff.service("other", CLAIM_AFTER="0.5")
    eventually(lambda: staff.outcomes() == 40)
    one.resume()
    new = sent(staff.world, 40)
    eventually(lambda: staff.outcomes() == 80 and staff.pending == 0)
    assert one.stop() == 0
    assert staff.outcomes() == 80
    assert set(staff.receiver.rides) == {*rides, *new}
    assert max(staff.receiver.rides.values()) <= 2
    assert len({request.webhook_id for request in staff.receiver.requests}) == 80


@BOTH
def test_who_has_no_lock_for_a_moment_is_not_gone(staff: Staff) -> None:
    """As after a restart of Postgres, when others are not back yet."""
    look = Membership(staff.world.connection, staff.group, claim_after=3600)
    assert look.gone(["another"]) == set()
    look.gone_after = 0
    assert look.gone(["another"]) == {"another"}


def test_a_slow_delivery_keeps_its_claim_alive(staff: Staff) -> None:
    """For much longer than CLAIM_AFTER, beside a worker that looks for what to claim.

    Its heartbeat is quicker still, so that a round may take two seconds and prove nothing wrong.
    """
    rides = sent(staff.world, 5)
    staff.receiver.behaviour = Answer(delay=6)
    patience = USUALLY._replace(timeout=30)
    one = staff.worker("one", patience._replace(claim_after=0.3))
    other = staff.worker("other", patience._replace(claim_after=2))
    one.until(lambda: len(staff.receiver.requests) == 5)
    one.until(lambda: other.run_once() and staff.outcomes() == 5)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


def test_a_receipt_that_kills_its_worker_each_time_is_dead_and_the_rest_goes_on(
    staff: Staff, impatient: None
) -> None:
    """Whatever else was under way with it is suspected too, and proves innocent."""
    rides = sent(staff.world, 60)
    killer = rides[30]
    hang = {killer}
    staff.receiver.behaviour = lambda r: HANG if r.ride_id in hang else Answer(delay=0.05)
    patience = USUALLY._replace(attempts=5)
    for worker in range(5):
        doomed = staff.worker(f"doomed{worker}", patience)
        doomed.until(lambda: len(staff.receiver.of(killer)) == worker + 1)  # noqa: B023
        doomed.die()
    last = staff.worker("last", patience)
    last.until(lambda: staff.outcomes() == 59 and staff.outcomes("dead") == 1)
    outcome, attempts, reason = staff.receipt(killer)
    assert (outcome, attempts) == ("dead", 5)
    assert "5 attempts" in str(reason)
    assert len(staff.receiver.of(killer)) == 5
    assert staff.pending == 0


def test_a_suspected_receipt_does_not_wait_for_the_end_of_a_backlog(staff: Staff) -> None:
    """It is tried alone; a place is kept for that, however many others are to be delivered."""
    suspect, *rest = sent(staff.world, 200)
    staff.receiver.behaviour = HANG
    for worker in range(2):
        doomed = staff.worker(f"doomed{worker}", concurrency=1)
        doomed.until(lambda: len(staff.receiver.of(suspect)) == worker + 1)  # noqa: B023
        doomed.die()
    staff.receiver.behaviour = Answer(delay=0.01)
    last = staff.worker("last", concurrency=2)
    last.until(lambda: staff.receipt(suspect).outcome)
    assert staff.outcomes() < len(rest) / 2
    last.until(lambda: staff.outcomes() == 200)


@pytest.mark.parametrize("pause", [0, 3600])
def test_between_the_turns_of_suspects_less_is_taken_over(
    staff: Staff, monkeypatch: pytest.MonkeyPatch, pause: float
) -> None:
    """To look at what is taken over takes longer than a turn."""
    sent(staff.world, 60)
    with_all_under_way(staff, "one", 60).die()
    staff.world.connection.execute("UPDATE receipts SET unfinished = 2")
    for name, value in {"SHARE": 10, "LOOK_EVERY": 3600, "LOOK_WITH_SUSPECTS": pause}.items():
        monkeypatch.setattr(intake, name, value)
    last = staff.worker("last", USUALLY._replace(claim_after=4 * 3600))
    rounds = last.until(lambda: staff.outcomes() >= 5)
    assert (sum(done.claimed for done in rounds) > 20) == (pause == 0)  # two looks at first
    if pause == 0:
        last.until(lambda: staff.outcomes() == 60)


@BOTH
def test_names_of_members_do_not_leak_over_100_restarts(staff: Staff) -> None:
    """Each dies with an entry pending under a name of its own."""
    sent(staff.world, 100)
    for restart in range(100):
        worker = staff.worker(f"one-{restart}", concurrency=1)
        with pytest.raises(InjectedCrash), crash_at(Step.BEFORE_SENDING):
            worker.until(lambda: False)
        worker.die()
    last = staff.worker("last")
    last.until(lambda: staff.outcomes() == 100 and len(staff.group.members()) == 1)
    assert staff.pending == 0


def test_a_second_process_of_one_name_stands_by_until_the_first_ends(staff: Staff) -> None:
    first = staff.service().says("one delivers receipts")
    second = staff.service().says("one is at work in another process; standing by")
    eventually(lambda: is_at_work(staff.world.connection, sessions.receipts("one")))
    first.kill()
    second.says("one delivers receipts")
    sent(staff.world, 3)
    eventually(lambda: staff.outcomes() == 3)
    assert "WARNING" not in second.output.read_text()


def test_a_worker_goes_on_with_what_its_former_session_had(staff: Staff) -> None:
    """Its connections were cut, its deliveries were not: none is made twice."""
    world = staff.world
    rides = sent(world, 10)
    staff.receiver.behaviour = Answer(delay=0.5)
    worker = staff.worker("one")
    worker.until(lambda: len(staff.receiver.requests) == 10)
    worker.connection.close()
    worker.log.redis.close()
    again = staff.session("one", worker.deliveries)
    again.intake.membership.claim_after = 3600  # that is for what others have
    again.until(lambda: staff.outcomes() == 10 and staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)
