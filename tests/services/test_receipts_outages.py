"""Receipts while a server is away or hangs, and a worker that is to end meanwhile."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from consumers.receipts import delivery
from consumers.receipts.queue import Attempt, Queue
from tests.support.disasters import stopped
from tests.support.receipts import Staff, sent
from tests.support.receiver import ACCEPT, Answer, refuse
from tests.support.world import PATIENCE, eventually, transaction


def test_without_redis_deliveries_go_on(staff: Staff) -> None:
    rides = sent(staff.world, 5)
    staff.receiver.behaviour = refuse(503)
    process = staff.service()
    eventually(lambda: staff.world.value("SELECT count(reason) FROM receipts") == 5)
    staff.world.redis.stop()
    staff.receiver.behaviour = ACCEPT
    try:
        eventually(lambda: staff.outcomes() == 5)
    finally:
        staff.world.redis.start()
    assert process.stop() == 0
    assert set(staff.receiver.rides) == set(rides)


def test_a_worker_ends_in_time_though_redis_hangs(staff: Staff) -> None:
    """Before honcho kills it. Where the machine stood still meanwhile, another one is asked."""

    def seconds() -> float:
        process = staff.service().says("one delivers receipts")
        with stopped(staff.world.redis.pid):
            began = time.monotonic()
            assert process.stop() == 0
            return time.monotonic() - began

    assert any(seconds() < 4 for _ in range(3))


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


def test_a_row_that_is_held_at_the_end_is_waited_for(staff: Staff) -> None:
    staff.receiver.behaviour = Answer(delay=0.3)
    worker = staff.worker()
    staff.queue_up(worker, 1)
    worker.until(lambda: staff.receiver.requests)
    with transaction(staff.world) as person, ThreadPoolExecutor(1) as beside:
        person.execute("SELECT FROM receipts FOR UPDATE")
        ending = beside.submit(worker.run, worker.delivery.finish(worker.queue, PATIENCE))
        eventually(lambda: worker.delivery._held, "an end that can't be written")
        person.commit()
        ending.result()
    assert worker.delivery.is_done
    assert staff.outcomes() == 1


def test_a_loop_that_reads_says_why_it_cannot(staff: Staff) -> None:
    """Only the sweep would deliver, and nobody would know."""
    odd = "ALTER TABLE malformed_entries ADD CONSTRAINT odd CHECK (id < 0)"
    staff.world.connection.execute(odd)
    staff.world.log().redis.xadd(staff.world.stream, {"data": "nonsense", "prev": "0"})
    staff.service().says('violates check constraint "odd"')


def test_it_says_so_also_of_a_lock_that_the_other_loop_does_not_need(staff: Staff) -> None:
    staff.world.log().redis.xadd(staff.world.stream, {"data": "nonsense", "prev": "0"})
    with transaction(staff.world) as person:
        person.execute("LOCK TABLE malformed_entries")
        staff.service().says("lock timeout")


def test_a_look_at_all_that_takes_too_long_leaves_others_their_turn(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a snapshot is held for hours, it meets the statement_timeout; the next session, too."""
    monkeypatch.setattr(delivery, "LOOK_AT_ALL_EVERY", 3600)
    take = Queue.take

    async def limited(queue: Queue, room: int, **how: bool) -> list[Attempt]:
        if how["look_at_all"]:
            raise psycopg.errors.QueryCanceled
        return await take(queue, room, **how)

    monkeypatch.setattr(Queue, "take", limited)
    worker = staff.worker()
    staff.queue_up(worker, 3)
    with pytest.raises(psycopg.errors.QueryCanceled):
        worker.deliver()
    worker.end_session()
    worker.begin_session()
    worker.delivery.has_news()  # as each session begins
    worker.until(lambda: staff.outcomes() == 3)
