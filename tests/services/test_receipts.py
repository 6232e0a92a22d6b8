"""Receipts: each ride's is delivered, whatever the receiver answers and wherever a worker ends."""

import json
import time

import psycopg
import pytest

from consumers.receipts.round import Step
from lab.chaos.backup import Backup
from rocket_rides.faults import InjectedCrash, crash_at
from rocket_rides.receipts import WEBHOOK_ID
from streamer.drain import Step as SendStep
from tests.support.clusters import fresh_world, restore
from tests.support.receipts import SOON, USUALLY, Staff, sent
from tests.support.receipts import staff as staff_of
from tests.support.receiver import (
    ACCEPT,
    CUT_SHORT,
    DISCONNECT,
    ENDLESS,
    GARBAGE,
    HANG,
    Answer,
    Receiver,
    Request,
    redirect,
    refuse,
)
from tests.support.world import World, drain, eventually


def test_every_ride_gets_its_receipt_once_from_whichever_worker(staff: Staff) -> None:
    rides = sent(staff.world, 300)
    one, other = staff.worker("one"), staff.worker("other")
    one.until(lambda: other.read() and other.deliver(0) and staff.outcomes() == 300)
    assert staff.pending == 0
    assert staff.receiver.rides == dict.fromkeys(rides, 1)
    assert staff.receipt(rides[0]) == ("delivered", 1, None)


def test_processes_deliver_what_is_taken_while_they_run_and_leave_no_trace(staff: Staff) -> None:
    world = staff.world
    world.service("streamer").says("leading")
    workers = [staff.service(name).says(f"{name} delivers receipts") for name in ("one", "other")]
    rides = [ride for n in range(20) for ride in world.take(*range(1, 11))]
    eventually(lambda: staff.outcomes() == 200)
    eventually(lambda: staff.pending == 0)
    assert staff.receiver.rides == dict.fromkeys(rides, 1)
    assert [worker.stop() for worker in workers] == [0, 0]
    for worker in workers:
        assert "WARNING" not in worker.output.read_text()
    members = world.log().command("XINFO", "CONSUMERS", world.stream, staff.group)
    assert members == []


@pytest.mark.parametrize("step", Step)
def test_a_crash_at_any_step_loses_no_receipt(staff: Staff, step: Step, impatient: None) -> None:
    rides = sent(staff.world, 20)
    worker = staff.worker("one", SOON)
    with pytest.raises(InjectedCrash), crash_at(step):
        worker.until(lambda: False)
    worker.die()
    other = staff.worker("other", SOON._replace(timeout=5, lease=10))
    other.until(lambda: staff.outcomes() == staff.complete_to == 20 and staff.pending == 0)
    sent_before = step is Step.BEFORE_SAVING
    for ride_id in rides:
        requests = staff.receiver.of(ride_id)
        assert len(requests) <= (2 if sent_before else 1)
        assert len({request.webhook_id for request in requests}) == 1
        assert staff.receipt(ride_id).attempts - len(requests) in (
            (0, 1) if step is Step.BEFORE_SENDING else (0,)
        )


ANSWERS: dict[str, tuple[Answer, bool]] = {
    "accepts": (ACCEPT, True),
    "hangs": (HANG, True),
    "answers garbage": (GARBAGE, True),
    "hangs up": (DISCONNECT, True),
    "is overloaded": (refuse(503), True),
    "asks to wait": (refuse(429, Retry_After="0"), True),
    "never ends": (ENDLESS, True),
    "stops in the middle of a body": (CUT_SHORT, True),
    "refuses": (refuse(422), False),
    "wants no more": (refuse(410), False),
    "redirects": (redirect("http://127.0.0.1:1/"), False),
}


def test_each_answer_is_what_it_means_and_one_bad_receipt_stops_no_other(
    staff: Staff, impatient: None
) -> None:
    """The answers are to the first attempt; the second is accepted."""
    rides = sent(staff.world, len(ANSWERS))
    meaning = dict(zip(rides, ANSWERS.values(), strict=True))

    def first_time(request: Request) -> Answer:
        before = staff.receiver.rides[request.ride_id]
        return ACCEPT if before else meaning[request.ride_id][0]

    staff.receiver.behaviour = first_time
    worker = staff.worker("one", SOON)
    worker.until(lambda: staff.outcomes() + staff.outcomes("dead") == len(rides))
    for ride_id, (what, (_, good)) in zip(rides, ANSWERS.items(), strict=True):
        assert staff.receipt(ride_id).outcome == ("delivered" if good else "dead"), what
        assert staff.receiver.rides[ride_id] == staff.receipt(ride_id).attempts, what
    assert staff.receipt(rides[-2]).reason
    assert staff.pending == 0


def test_a_receipt_is_dead_after_so_many_attempts_and_says_why(
    staff: Staff, impatient: None
) -> None:
    [bad, good] = sent(staff.world, 2)
    staff.receiver.behaviour = lambda r: refuse(500) if r.ride_id == bad else ACCEPT
    worker = staff.worker("one", SOON._replace(attempts=4))
    worker.until(lambda: staff.outcomes("dead") == 1)
    outcome, attempts, reason = staff.receipt(bad)
    assert (outcome, attempts, staff.receiver.rides[bad]) == ("dead", 4, 4)
    assert reason is not None
    assert "500" in reason
    assert staff.receipt(good).outcome == "delivered"
    assert staff.pending == 0


def test_a_receiver_that_asks_for_time_gets_it(staff: Staff, impatient: None) -> None:
    """Also from another worker: what it asked for is in Postgres."""
    [ride_id] = sent(staff.world, 1)
    staff.receiver.behaviour = refuse(503, Retry_After="1")
    one = staff.worker("one")
    one.until(lambda: staff.receipt(ride_id).reason)
    one.die()
    staff.receiver.behaviour = ACCEPT
    staff.worker("other").until(lambda: staff.outcomes() == 1)
    first, second = staff.receiver.of(ride_id)
    assert 0.9 < second.at - first.at < 5


def test_a_receiver_that_is_down_for_long_makes_nothing_dead_and_is_asked_rarely(
    staff: Staff, impatient: None
) -> None:
    """10,000 receipts wait. Whatever it fails with, few of them are tried; and all are read."""
    rides = sent(staff.world, 10_000)
    staff.receiver.behaviour = refuse(500)
    worker = staff.worker("one")
    until = time.monotonic() + 1.5
    worker.until(lambda: time.monotonic() > until)
    assert worker.delivery.breaker.is_open
    assert len(staff.receiver.requests) < 100
    staff.receiver.goes_away()
    until = time.monotonic() + 1
    worker.until(lambda: time.monotonic() > until)
    assert staff.world.value("SELECT count(*) FROM receipts") == len(rides)
    assert staff.pending == 0
    staff.receiver.behaviour = ACCEPT
    staff.receiver.comes_back()
    worker.until(lambda: staff.outcomes() > 2000)
    assert staff.outcomes("dead") == 0
    assert set(staff.receiver.rides) <= set(rides)
    assert staff.world.value("SELECT max(attempts) FROM receipts") <= 4


def test_attempts_that_nobody_took_do_not_count(staff: Staff, impatient: None) -> None:
    [ride_id] = sent(staff.world, 1)
    staff.receiver.goes_away()
    worker = staff.worker("one", USUALLY._replace(attempts=1))
    worker.until(lambda: staff.receipt(ride_id).attempts >= 3)
    assert staff.receipt(ride_id).reason
    staff.receiver.comes_back()
    worker.until(lambda: staff.outcomes() == 1)
    counted = "SELECT attempts - excused FROM receipts WHERE ride_id = %s"
    assert staff.world.value(counted, ride_id) == 1


def test_sigterm_in_the_middle_of_deliveries_loses_none_and_repeats_none(staff: Staff) -> None:
    sent(staff.world, 20)
    staff.receiver.behaviour = Answer(delay=0.5)
    worker = staff.service()
    eventually(lambda: len(staff.receiver.requests) == 20)
    assert worker.stop() == 0
    assert staff.outcomes() == 20
    assert staff.pending == 0
    assert max(staff.receiver.rides.values()) == 1


def test_an_outage_of_our_own_makes_nothing_dead_and_repeats_nothing(
    staff: Staff, impatient: None
) -> None:
    """Postgres takes attempts and refuses outcomes, as on a full disk, for many sessions."""
    sent(staff.world, 10)
    staff.world.connection.execute(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE disk_full; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON receipts FOR EACH ROW
        WHEN (NEW.lease IS NULL) EXECUTE FUNCTION refuse()
        """,
        prepare=False,
    )
    worker = staff.worker("one")
    for _ in range(12):
        with pytest.raises(psycopg.errors.DiskFull):
            worker.until(lambda: False)
        worker.end_session()
        worker.begin_session()
    staff.world.connection.execute("DROP TRIGGER refuse ON receipts")
    worker.until(lambda: staff.outcomes() == 10)
    assert set(staff.receiver.rides.values()) == {1}
    assert staff.world.value("SELECT max(attempts) FROM receipts") == 1


def test_nothing_is_sent_before_the_streamer_has_committed_it(staff: Staff) -> None:
    """Its entry has been read and acknowledged by then: it is in the inbox."""
    world = staff.world
    [ride_id] = world.take(5)
    with pytest.raises(InjectedCrash), crash_at(SendStep.AFTER_SEND):
        world.streamer().run_once()
    worker = staff.worker("one")
    worker.until(lambda: staff.world.value("SELECT count(*) FROM receipts") == 1)
    assert staff.pending == 0
    until = time.monotonic() + 0.2
    worker.until(lambda: time.monotonic() > until)
    assert staff.receiver.requests == []
    drain(world.streamer())
    worker.until(lambda: staff.outcomes() == 1 and staff.pending == 0)
    assert staff.receiver.rides == {ride_id: 1}


def test_receipts_are_sent_while_the_sequence_is_set_back(staff: Staff) -> None:
    """What was sent was drawn."""
    sent(staff.world, 3)
    staff.world.connection.execute("ALTER SEQUENCE log_position RESTART WITH 1")
    rounds = staff.worker("one").until(lambda: staff.outcomes() == 3)
    assert sum(done.unbelieved.total for done in rounds) == 0


def test_databases_with_equal_rides_give_them_different_ids(world: World) -> None:
    """Each has a salt of its own."""
    world.take(5)
    ids = set()
    for digit in "01":
        world.connection.execute("UPDATE receipts_state SET salt = repeat(%s, 32)", [digit])
        row = world.connection.execute(f"SELECT {WEBHOOK_ID} FROM rides, receipts_state").fetchone()
        ids.add(row)
    assert len(ids) == 2


def test_what_is_no_record_or_about_no_ride_of_ours_is_acknowledged_and_never_sent(
    staff: Staff,
) -> None:
    """What is sent is what `rides` says, not what the log does."""
    world = staff.world
    [ride_id] = sent(world, 1)
    add = world.log().redis.xadd
    add(world.stream, {"data": "nonsense", "prev": "0"})
    add(world.stream, {"data": '{"id": 2, "distance": 666}', "prev": "1", "term": "f" * 16})
    add(world.stream, {"data": '{"id": 1, "distance": 666}', "prev": "0", "term": "f" * 16})
    worker = staff.worker("one")
    rounds = worker.until(lambda: staff.pending == 0 and staff.outcomes() == 1)
    assert sum(done.unbelieved.total for done in rounds) == 2
    [reason] = [found.reason for done in rounds for found in done.set_aside]
    assert reason.startswith("data is not a record")
    assert world.value("SELECT count(*) FROM dead_letters WHERE consumer_kind = 'receipts'") == 1
    counted = "SELECT unbelieved_entries, entries_set_aside FROM receipts_workers"
    assert world.connection.execute(counted).fetchall() == [(2, 1)]
    [request] = staff.receiver.requests
    assert (request.ride_id, json.loads(request.body)["data"]["distance"]) == (ride_id, 1)


def test_two_fleets_on_one_stream_deliver_each_their_own(staff: Staff) -> None:
    world = staff.world
    with (
        fresh_world(world.postgres, world.redis, world.folder) as another,
        Receiver() as receiver,
        staff_of(another, receiver) as others,
    ):
        another.stream = world.stream
        for _ in range(3):
            sent(world, 5)
            sent(another, 10)
        ours, theirs = staff.worker("one"), others.worker("one")
        ours.until(
            lambda: (
                theirs.read()
                and theirs.deliver(0)
                and staff.outcomes() == 15
                and others.outcomes() == 30
            )
        )
        assert staff.pending == others.pending == 0
        assert set(staff.receiver.rides.values()) == set(receiver.rides.values()) == {1}
        ids = {request.webhook_id for request in staff.receiver.requests + receiver.requests}
        assert len(ids) == 45


def test_rides_of_a_history_that_was_lost_are_told_apart_by_their_id(
    own_world: World, receiver: Receiver
) -> None:
    """Rides 3 to 5 are lost with a restore, and others take their numbers."""
    world = own_world
    with staff_of(world, receiver) as staff:
        sent(world, 2)
        worker = staff.worker("one", SOON)
        worker.until(lambda: staff.outcomes() == 2)
        backup = Backup(world.postgres, "first")
        sent(world, 3)
        worker.until(lambda: staff.outcomes() == 5)
        restore(world, backup, recovery_signal=True)
        worker.die()
        sent(world, 3)
        worker = staff.worker("one", SOON)
        worker.until(lambda: staff.outcomes() == 5 and staff.pending == 0)
        ids = {ride: {r.webhook_id for r in receiver.of(ride)} for ride in range(1, 6)}
        assert [len(ids[ride]) for ride in range(1, 6)] == [1, 1, 2, 2, 2]
        assert receiver.rides == {1: 1, 2: 1, 3: 2, 4: 2, 5: 2}


def test_an_unsaved_outcome_of_a_lost_history_is_not_written(staff: Staff) -> None:
    """Between two sessions ride 1 has become another one."""
    [ride_id] = sent(staff.world, 1)
    staff.receiver.behaviour = Answer(delay=0.3)
    worker = staff.worker("one")
    worker.until(lambda: worker.delivery.in_flight)
    staff.world.connection.execute("UPDATE rides SET created_at = now(), distance = 7")
    worker.until(lambda: staff.receiver.rides[ride_id] and not worker.delivery.in_flight)
    worker.deliver(0)
    assert staff.receipt(ride_id).outcome is None


def test_a_ride_of_a_time_that_no_receipt_can_state_is_a_dead_letter(staff: Staff) -> None:
    world = staff.world
    [bad, good] = sent(world, 2)
    world.connection.execute("UPDATE rides SET created_at = 'infinity' WHERE id = %s", [bad])
    worker = staff.worker("one")
    worker.until(lambda: staff.outcomes("dead") == 1 and staff.outcomes() == 1)
    assert "created_at" in str(staff.receipt(bad).reason)
    assert staff.receiver.rides == {good: 1}
