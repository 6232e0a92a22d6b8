"""Receipts while something is away, refuses, or comes back: nothing stops a worker for ever."""

import os
import signal
import time

import psycopg
import pytest

from consumers.receipts.dead import change
from tests.support.disasters import flush
from tests.support.receipts import SOON, USUALLY, Staff, sent
from tests.support.receiver import ACCEPT, HANG, Answer, refuse
from tests.support.world import eventually, transaction


def test_an_answer_that_asks_for_time_is_written_down_beside_any_other(
    staff: Staff, impatient: None
) -> None:
    """Two attempts end in one round."""
    [first, second] = sent(staff.world, 2)
    asks = refuse(503, Retry_After="1")
    staff.receiver.behaviour = lambda request: asks if request.ride_id == first else refuse(503)
    worker = staff.worker("one")
    worker.until(lambda: staff.receipt(second).reason and staff.receipt(first).reason)
    assert {str(staff.receipt(ride).reason) for ride in (first, second)} == {"status 503"}


def test_a_sweep_looks_at_a_page_at_a_time_and_goes_on_at_once(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rides there are."""
    monkeypatch.setattr("consumers.receipts.queue.PAGE", 7)
    rides = sent(staff.world, 60)
    flush(staff.world)
    one = staff.worker("one", SOON)
    rounds = one.until(lambda: staff.outcomes() == 60)
    assert max(len(done.swept) for done in rounds) == 7
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


def test_an_outcome_that_postgres_refuses_holds_up_no_other(staff: Staff, impatient: None) -> None:
    """It is tried again, like an attempt that nobody wrote the end of."""
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
    one.until(lambda: staff.outcomes() == 10)
    assert set(staff.receiver.rides) == set(rides)


def test_a_worker_that_is_to_end_writes_down_what_has_ended_before(staff: Staff) -> None:
    sent(staff.world, 1)
    staff.receiver.behaviour = Answer(delay=0.2)
    one = staff.worker("one")
    one.until(lambda: one.delivery.in_flight)
    assert one.run(one.delivery.finish(one.queue, 5)).delivered == [1]
    assert staff.outcomes() == 1


def test_a_worker_that_is_to_end_says_so_of_what_it_cancels(staff: Staff) -> None:
    """Or two deployments, one after the other, would have all of it quarantined."""
    rides = sent(staff.world, 20)
    staff.receiver.behaviour = HANG
    for name in ("one", "two"):
        worker = staff.worker(name)
        worker.until(lambda: len(worker.delivery.in_flight) == 20)  # noqa: B023
        worker.run(worker.delivery.finish(worker.queue, 0))
        found = staff.world.connection.execute(
            "SELECT DISTINCT unfinished, attempts - excused, lease, reason FROM receipts"
        )
        assert found.fetchall() == [(0, 0, None, "the worker was stopped")]
    staff.receiver.behaviour = ACCEPT
    staff.worker("three").until(lambda: staff.outcomes() == len(rides))


def test_without_redis_deliveries_go_on(staff: Staff) -> None:
    rides = sent(staff.world, 5)
    staff.receiver.behaviour = refuse(503, Retry_After="1")
    process = staff.service()
    eventually(lambda: staff.world.value("SELECT count(reason) FROM receipts") == 5)
    staff.receiver.behaviour = ACCEPT
    staff.world.redis.stop()
    try:
        eventually(lambda: staff.outcomes() == 5)
    finally:
        staff.world.redis.start()
    assert process.stop() == 0
    assert staff.receiver.rides == dict.fromkeys(rides, 2)


def test_a_worker_ends_in_time_though_redis_hangs(staff: Staff) -> None:
    """Before honcho kills it."""
    process = staff.service().says("one delivers receipts")
    os.kill(staff.world.redis.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        assert process.stop() == 0
        assert time.monotonic() - began < 4
    finally:
        os.kill(staff.world.redis.pid, signal.SIGCONT)


def test_a_receiver_that_was_down_gets_what_waits_also_what_is_replayed(
    staff: Staff, impatient: None
) -> None:
    sent(staff.world, 20)
    staff.receiver.behaviour = refuse(503)
    one = staff.worker("one", USUALLY._replace(attempts=1))
    one.until(lambda: staff.outcomes("dead") == 20)
    assert one.delivery.breaker.is_open
    change(staff.world.connection, "replay", [], every=True)
    staff.receiver.behaviour = ACCEPT
    one.until(lambda: staff.outcomes() == 20)


def test_a_row_that_somebody_holds_holds_up_no_other(staff: Staff) -> None:
    """Neither a receipt's, when its outcome is to be written, nor that of the sweep."""
    held, *others = sent(staff.world, 3)
    staff.receiver.behaviour = Answer(delay=0.5)
    process = staff.service(SWEEP_AFTER="0.3", RECEIPT_TIMEOUT="2", RECEIPT_LEASE="4")
    eventually(lambda: len(staff.receiver.requests) == 3)
    with transaction(staff.world) as person:
        person.execute("SELECT FROM receipts WHERE ride_id = %s FOR UPDATE", [held])
        person.execute("SELECT FROM receipts_state FOR UPDATE")
        eventually(lambda: staff.outcomes() == 2)
        others += sent(staff.world, 3)
        eventually(lambda: staff.outcomes() == 5)
        assert staff.complete_to == 0
        assert "trying again" not in process.output.read_text()
        person.rollback()
    eventually(lambda: staff.complete_to == 6)
    assert {staff.receiver.rides[ride] for ride in others} == {1}


def test_who_is_to_end_between_two_sessions_writes_down_what_has_ended(staff: Staff) -> None:
    """Postgres was away when the answers came, and is back."""
    rides = sent(staff.world, 5)
    staff.receiver.behaviour = Answer(delay=0.5)
    process = staff.service()
    eventually(lambda: len(staff.receiver.requests) == 5)
    database = staff.world.connection.info.dbname
    allow = f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS'
    with psycopg.connect(staff.world.postgres.url, autocommit=True) as elsewhere:
        elsewhere.execute(f"{allow} false")
        try:
            for kind in ("receipts one", "inbox one"):
                elsewhere.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = %s AND application_name LIKE %s",
                    [database, f"{kind}%"],  # perhaps it is still starting
                )
            process.says("trying again until it works")
        finally:
            elsewhere.execute(f"{allow} true")
    assert process.stop() == 0
    assert staff.outcomes() == 5
    assert staff.receiver.rides == dict.fromkeys(rides, 1)


def test_a_loop_that_reads_says_why_it_cannot(staff: Staff) -> None:
    """Only the sweep would deliver, and nobody would know."""
    staff.world.connection.execute("ALTER TABLE dead_letters ADD CONSTRAINT odd CHECK (id < 0)")
    staff.world.log().redis.xadd(staff.world.stream, {"data": "nonsense", "prev": "0"})
    staff.service().says('violates check constraint "odd"')
