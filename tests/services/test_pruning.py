"""Old idempotency keys go, in short transactions; no booking is broken by it, or made twice."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import Row

from api import booking, pruning, writing
from rocket_rides.cells import CELL_SIZE
from rocket_rides.locks import Lock
from tests.support.api import Api
from tests.support.disasters import trigger
from tests.support.engine import opened
from tests.support.world import PATIENCE, World, eventually
from unified_log.locks import try_lock
from unified_log.process import Stop

DAYS = 30
# Enough for several ranges of blocks; every third key is old, so that none could be left out whole.
MANY = 50_000
KEYS = """
    INSERT INTO idempotency_keys (key, distance, ride_id, created_at)
    SELECT 'key-' || n, 5, n,
        now() - make_interval(days => CASE n %% 3 WHEN 0 THEN 31 ELSE 29 END)
    FROM generate_series(1, %s) n
"""
NOTE = """
    INSERT INTO blocks VALUES (
        pg_current_xact_id(), (OLD.ctid::text::point)[0], current_setting('transaction_isolation')
    );
    RETURN OLD;
"""


def prune(world: World, stop: Stop | None = None) -> int:
    return pruning.prune(world.connect(**pruning.SESSION), DAYS, stop or Stop())


def test_the_old_keys_go_and_each_block_is_visited_once_by_one_of_many_transactions(
    world: World,
) -> None:
    world.connection.execute(KEYS, [MANY])
    world.connection.execute("CREATE TABLE blocks (transaction xid8, block bigint, level text)")
    trigger(world, "note", "BEFORE DELETE ON idempotency_keys", NOTE)
    assert prune(world) == MANY // 3
    assert world.value("SELECT count(*) FROM idempotency_keys") == MANY - MANY // 3
    old = "SELECT count(*) FROM idempotency_keys WHERE created_at < now() - interval '30 days'"
    assert world.value(old) == 0
    rows = world.connection.execute(
        "SELECT min(block), max(block) FROM blocks GROUP BY transaction ORDER BY 1"
    ).fetchall()
    size = pruning.BLOCKS_AT_A_TIME
    assert [least // size for least, _ in rows] == list(range(len(rows)))
    assert all(least // size == greatest // size for least, greatest in rows)
    assert len(rows) > 2
    # No booking, which is SERIALIZABLE, can fail for a transaction that is not.
    levels = world.connection.execute("SELECT DISTINCT level FROM blocks").fetchall()
    assert levels == [("read committed",)]


def test_only_the_ranges_own_blocks_are_read(world: World) -> None:
    world.connection.execute(KEYS, [3])
    values = {"first": "(128,0)", "end": "(256,0)", "cutoff": "2000-01-01"}
    plan = world.connection.execute(f"EXPLAIN {pruning.PRUNE_BLOCKS}", values).fetchall()
    wanted = "TID Cond: ((ctid >= '(128,0)'::tid) AND (ctid < '(256,0)'::tid))"
    assert wanted in [line.strip() for (line,) in plan], plan


def test_a_key_goes_once_its_time_is_over_and_not_at_its_end(world: World) -> None:
    world.connection.execute(KEYS, [1])
    created = datetime(2026, 1, 1, tzinfo=UTC)
    world.connection.execute("UPDATE idempotency_keys SET created_at = %s", [created])
    for later, gone in ((timedelta(), 0), (timedelta.resolution, 1)):
        values = {"first": "(0,0)", "end": "(9,0)", "cutoff": created + later}
        assert world.connection.execute(pruning.PRUNE_BLOCKS, values).rowcount == gone


def test_a_booking_whose_key_is_pruned_while_it_looks_for_the_ride_takes_a_new_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.connection.execute(KEYS, [3])
    find = writing.find

    def find_too_late(*asked: Any) -> Row[Any]:
        assert prune(world) == 1  # and it does not wait for the booking
        return find(*asked)

    monkeypatch.setattr(writing, "find", find_too_late)
    monkeypatch.setattr(writing, "PATIENCE", PATIENCE)
    with opened(world) as database:
        taken = booking.take(database, Decimal(5), "key-3")
        monkeypatch.undo()
        assert not taken.replayed
        assert world.truth == (taken.id, 5)
        assert booking.take(database, Decimal(5), "key-3") == taken._replace(replayed=True)
    assert world.truth == (taken.id, 5)


OLD_KEYS = """
    INSERT INTO idempotency_keys VALUES
        ('a year', 5, 1, now() - interval '1 year'), ('days', 5, 2, now() - interval '3 days'),
        ('hours', 5, 3, now() - interval '3 hours')
"""


def keys(world: World) -> set[str]:
    return {key for (key,) in world.connection.execute("SELECT key FROM idempotency_keys")}


def test_the_api_prunes_when_it_starts_so_that_no_day_is_missed(world: World) -> None:
    world.connection.execute(OLD_KEYS)
    api = Api(world, IDEMPOTENCY_DAYS="2", API_WORKERS="2")
    api.service.says("INFO    pruned 2 idempotency keys older than 2 days\n")
    api.client.close()
    assert keys(world) == {"hours"}
    assert api.service.stop() == 0
    assert api.service.output.read_text().count("pruned") == 1  # there are two workers


@contextmanager
def pruner(world: World, every: float = 0.05) -> Iterator[None]:
    """A worker's pruning, in a thread, with short days."""
    stop = Stop()
    thread = Thread(target=pruning.Pruner(world.config(), stop, every).run)
    thread.start()
    try:
        yield
    finally:
        stop.ask()
        thread.join()


def test_one_worker_prunes_at_a_time_day_after_day(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    world.connection.execute(OLD_KEYS)
    with world.connect() as other:
        assert try_lock(other, Lock.PRUNING)
        with pruner(world):
            eventually(lambda: caplog.messages.count("another worker is pruning the keys") > 1)
            assert "a year" in keys(world)
            other.close()
            eventually(lambda: keys(world) == {"days", "hours"})
            world.connection.execute("DELETE FROM idempotency_keys")
            world.connection.execute(OLD_KEYS)
            eventually(lambda: keys(world) == {"days", "hours"})


def test_the_keys_of_another_cell_are_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where Postgres was away when the API started, and so could not tell its cell."""
    monkeypatch.setenv("CELL", str(world.start // CELL_SIZE + 1))
    monkeypatch.setattr(pruning, "SOON", 0.01)
    world.connection.execute(OLD_KEYS)
    with pruner(world):
        eventually(lambda: [line for line in caplog.messages if "the database is cell" in line])
    assert keys(world) == {"a year", "days", "hours"}


def test_what_cannot_be_pruned_now_is_tried_again_and_told_when_it_lasts(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setattr(pruning, "SOON", 0.01)
    monkeypatch.setattr(pruning, "RETRY", 0.01)
    world.connection.execute(OLD_KEYS)
    world.connection.execute("ALTER TABLE idempotency_keys RENAME TO away")
    with pruner(world, every=pruning.A_DAY):
        eventually(lambda: "WARNING" in [record.levelname for record in caplog.records])
        world.connection.execute("ALTER TABLE away RENAME TO idempotency_keys")
        eventually(lambda: keys(world) == {"days", "hours"})
    failures = [
        r for r in caplog.records if "can't prune idempotency keys: relation" in r.getMessage()
    ]
    assert failures[0].levelno == logging.DEBUG
    assert {record.levelno for record in failures[1:]} == {logging.WARNING}
