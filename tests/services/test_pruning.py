"""Old idempotency keys go, in short transactions; no booking is broken by it, or made twice."""

import logging
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Thread

import psycopg
import pytest

from api import booking, pruning
from api.pool import open_pool
from api.prepared import Row
from rocket_rides.locks import Lock, try_lock
from rocket_rides.process import Stop
from rocket_rides.settings import load
from tests.support.api import Api
from tests.support.world import World, eventually

DAYS = 30
# Enough for many ranges of blocks; every third key is old, so that none could be left out whole.
MANY = 100_000
KEYS = """
    INSERT INTO idempotency_keys (key, distance, ride_id, created_at)
    SELECT 'key-' || n, 5, n,
        now() - make_interval(days => CASE n %% 3 WHEN 0 THEN 31 ELSE 29 END)
    FROM generate_series(1, %s) n
"""
# Notes the block of each deleted key, and what transaction deleted it.
WATCH = [
    "CREATE TABLE blocks (transaction xid8, block bigint, level text)",
    """
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO blocks VALUES (
            pg_current_xact_id(),
            (OLD.ctid::text::point)[0],
            current_setting('transaction_isolation')
        );
        RETURN OLD;
    END $$
    """,
    "CREATE TRIGGER note BEFORE DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION note()",
]


@pytest.fixture
def api(world: World) -> Iterator[Api]:
    """An API that keeps all keys: those that are old here are a test's to prune."""
    api = Api(world, IDEMPOTENCY_DAYS="36500")
    yield api
    api.client.close()


def prune(world: World, stop: Stop | None = None) -> int:
    return pruning.prune(world.connect(**pruning.SESSION), DAYS, stop or Stop())


def age(world: World, *keys: str) -> None:
    """Make the keys older than they may become."""
    world.connection.execute(
        "UPDATE idempotency_keys SET created_at = now() - interval '31 days' WHERE key = ANY(%s)",
        [list(keys)],
    )


def post(api: Api, key: str) -> tuple[int, bool, int]:
    """Post a ride under `key`: the status, whether it is one of before, and which ride it is."""
    answer = api.post("5", **{"Idempotency-Key": key})
    ride = answer.json().get("ride", {}).get("id", 0)
    return answer.status_code, "idempotent-replayed" in answer.headers, ride


def test_the_old_keys_go_and_only_they(world: World) -> None:
    world.connection.execute(KEYS, [MANY])
    assert prune(world) == MANY // 3
    assert world.value("SELECT count(*) FROM idempotency_keys") == MANY - MANY // 3
    assert (
        world.value(
            "SELECT count(*) FROM idempotency_keys WHERE created_at < now() - interval '30 days'"
        )
        == 0
    )
    assert prune(world) == 0


def test_a_key_goes_when_its_last_day_is_over_and_not_before(world: World) -> None:
    # Reckoned by the server's clock: nobody else's is asked.
    world.connection.execute(
        """
        INSERT INTO idempotency_keys (key, distance, ride_id, created_at) VALUES
            ('over', 5, 1, now() - interval '30 days 1 second'),
            ('not yet', 5, 2, now() - interval '29 days 23 hours 59 minutes')
        """
    )
    assert prune(world) == 1
    assert world.value("SELECT count(*) FROM idempotency_keys WHERE key = 'not yet'") == 1


def test_each_block_is_visited_once_by_one_of_many_transactions(world: World) -> None:
    world.connection.execute(KEYS, [MANY])
    for statement in WATCH:
        world.connection.execute(statement)
    prune(world)
    rows = world.connection.execute(
        "SELECT min(block), max(block) FROM blocks GROUP BY transaction ORDER BY 1"
    ).fetchall()
    size = pruning.BLOCKS_AT_A_TIME
    assert [least // size for least, _ in rows] == list(range(len(rows)))
    assert all(least // size == greatest // size for least, greatest in rows)
    assert len(rows) > 5
    # No booking, which is SERIALIZABLE, can fail for a transaction that is not.
    levels = world.connection.execute("SELECT DISTINCT level FROM blocks").fetchall()
    assert levels == [("read committed",)]


def test_only_the_ranges_own_blocks_are_read(world: World) -> None:
    world.connection.execute(KEYS, [MANY])
    values = {"first": "(128,0)", "behind": "(256,0)", "cutoff": "2000-01-01"}
    plan = world.connection.execute(f"EXPLAIN {pruning.PRUNE_BLOCKS}", values).fetchall()
    wanted = "TID Cond: ((ctid >= '(128,0)'::tid) AND (ctid < '(256,0)'::tid))"
    assert wanted in [line.strip() for (line,) in plan], plan


def test_a_key_goes_once_its_time_is_over_and_not_at_its_end(world: World) -> None:
    world.connection.execute(KEYS, [1])
    created = datetime(2026, 1, 1, tzinfo=UTC)
    world.connection.execute("UPDATE idempotency_keys SET created_at = %s", [created])
    for later, gone in ((timedelta(), 0), (timedelta.resolution, 1)):
        values = {"first": "(0,0)", "behind": "(9,0)", "cutoff": created + later}
        assert world.connection.execute(pruning.PRUNE_BLOCKS, values).rowcount == gone


def test_told_to_stop_it_deletes_no_more(world: World) -> None:
    world.connection.execute(KEYS, [3])
    stop = Stop()
    stop.ask()
    assert prune(world, stop) == 0


def test_a_booking_whose_key_is_pruned_while_it_looks_for_the_ride_takes_a_new_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.connection.execute(KEYS, [3])
    find = booking.FIND_RIDE_OF_KEY

    def find_too_late(connection: psycopg.Connection, key: str) -> list[Row]:
        assert prune(world) == 1  # and it does not wait for the booking
        return find(connection, key)

    monkeypatch.setenv("DATABASE_URL", world.postgres_url)
    monkeypatch.setattr(booking, "FIND_RIDE_OF_KEY", find_too_late)
    with open_pool(load()) as pool:
        taken = booking.take(pool, Decimal(5), "key-3")
        monkeypatch.undo()
        assert not taken.replayed
        assert world.truth == (taken.id, 5)
        assert booking.take(pool, Decimal(5), "key-3") == taken._replace(replayed=True)
    assert world.truth == (taken.id, 5)


@pytest.mark.parametrize("pruned", [True, False])
def test_a_retry_beside_a_prune_waits_for_it_and_answers(
    api: Api, world: World, pruned: bool
) -> None:
    first = post(api, "k")
    age(world, "k")
    pruner = world.connect(**pruning.SESSION)
    values = {"first": "(0,0)", "behind": "(9,0)", "cutoff": "2100-01-01"}
    with ThreadPoolExecutor(1) as thread:
        with pruner.transaction(force_rollback=not pruned):
            assert pruner.execute(pruning.PRUNE_BLOCKS, values).rowcount == 1
            retry = thread.submit(post, api, "k")
            eventually(lambda: world.value("SELECT count(*) FROM pg_locks WHERE NOT granted"))
        answer = retry.result()
    if pruned:
        assert answer[:2] == (201, False)
        assert answer[2] > first[2]
    else:
        assert answer == (201, True, first[2])
    assert world.value("SELECT count(*) FROM rides") == 1 + pruned


def test_a_key_that_is_being_written_is_not_waited_for(world: World) -> None:
    with world.connect().transaction() as open_transaction:
        open_transaction.connection.execute(KEYS, [3])
        assert prune(world) == 0


def test_retries_beside_a_prune_that_never_ends_take_one_ride_a_key(api: Api, world: World) -> None:
    """Each key comes four times at once; half of them have expired, and are new the first time."""
    keys = [f"k{number}" for number in range(100)]
    with ThreadPoolExecutor(8) as threads:
        before = dict(zip(keys, threads.map(lambda key: post(api, key), keys), strict=True))
        old = keys[::2]
        age(world, *old)
        pruner = world.connect(**pruning.SESSION)
        deleted, stop = 0, Stop()

        def prune_on_and_on() -> None:
            nonlocal deleted
            while not stop:
                deleted += pruning.prune(pruner, DAYS, stop)

        pruning_thread = Thread(target=prune_on_and_on)
        pruning_thread.start()
        answers = list(threads.map(lambda key: (key, post(api, key)), keys * 4))
        eventually(lambda: deleted >= len(old))
        stop.ask()
        pruning_thread.join()
    assert deleted == len(old)
    assert {status for _, (status, _, _) in answers} == {201}
    for key, (_, replayed, ride) in answers:
        if key not in old:
            assert (replayed, ride) == (True, before[key][2])
    taken_anew = Counter(key for key, (_, replayed, _) in answers if not replayed)
    assert set(taken_anew) <= set(old)
    assert set(taken_anew.values()) <= {1}
    assert world.value("SELECT count(*) FROM rides") == len(keys) + len(taken_anew)


OLD_KEYS = """
    INSERT INTO idempotency_keys VALUES
        ('a year', 5, 1, now() - interval '1 year'), ('days', 5, 2, now() - interval '3 days'),
        ('hours', 5, 3, now() - interval '3 hours')
"""


def keys(world: World) -> set[str]:
    return {key for (key,) in world.connection.execute("SELECT key FROM idempotency_keys")}


def test_the_api_prunes_when_it_starts_so_that_no_day_is_missed(world: World) -> None:
    world.connection.execute(OLD_KEYS)
    api = Api(world, IDEMPOTENCY_DAYS="2")
    api.service.says("INFO    pruned 2 idempotency keys older than 2 days\n")
    api.client.close()
    assert keys(world) == {"hours"}
    assert api.service.stop() == 0
    assert api.service.output.read_text().count("pruned") == 1  # there are two workers


@contextmanager
def pruner(world: World, monkeypatch: pytest.MonkeyPatch, every: float = 0.05) -> Iterator[None]:
    """A worker's pruning, in a thread, with short days."""
    monkeypatch.setenv("DATABASE_URL", world.postgres_url)
    stop = Stop()
    thread = Thread(target=pruning.Pruner(load(), stop, every).run)
    thread.start()
    try:
        yield
    finally:
        stop.ask()
        thread.join()


def test_keys_are_pruned_day_after_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with pruner(world, monkeypatch):
        for _ in range(3):
            world.connection.execute(OLD_KEYS)
            eventually(lambda: keys(world) == {"days", "hours"})
            world.connection.execute("DELETE FROM idempotency_keys")


def test_one_worker_prunes_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    world.connection.execute(OLD_KEYS)
    with world.connect() as other:
        assert try_lock(other, Lock.PRUNING)
        with pruner(world, monkeypatch):
            eventually(lambda: caplog.messages.count("another worker is pruning the keys") > 1)
            assert "a year" in keys(world)
            other.close()
            eventually(lambda: "a year" not in keys(world))


def test_what_cannot_be_pruned_now_is_tried_again_and_told_when_it_lasts(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setattr(pruning, "SOON", 0.01)
    monkeypatch.setattr(pruning, "RETRY", 0.01)
    world.connection.execute(OLD_KEYS)
    world.connection.execute("ALTER TABLE idempotency_keys RENAME TO away")
    with pruner(world, monkeypatch, every=pruning.A_DAY):
        eventually(lambda: "WARNING" in [record.levelname for record in caplog.records])
        world.connection.execute("ALTER TABLE away RENAME TO idempotency_keys")
        eventually(lambda: keys(world) == {"days", "hours"})
    failures = [
        r for r in caplog.records if "can't prune idempotency keys: relation" in r.getMessage()
    ]
    assert failures[0].levelno == logging.DEBUG
    assert {record.levelno for record in failures[1:]} == {logging.WARNING}
