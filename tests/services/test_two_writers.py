"""Two writers of one version of a row that every batch updates: as if it had no version."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
import pytest

from consumers.ratings import stars
from consumers.receipts import statements
from consumers.rollup import generation
from consumers.totals import total
from tests.support.world import World, eventually, transaction
from unified_log.readers import checkpoint
from unified_log.streamer import drain

TERM, NEXT = "a" * 16, "b" * 16
MADE = f"""
    INSERT INTO checkpoints (kind, name) VALUES ('total', 'c'), ('ratings', 'c');
    INSERT INTO consumer_states (name) VALUES ('c');
    INSERT INTO rating_sums (name) VALUES ('c');
    INSERT INTO terms (after, term) VALUES (0, '{TERM}');
    -- In any cell:
    UPDATE checkpoints SET position = 0, furthest = 0;
    UPDATE streamer_state SET last_sent_id = 0;
    UPDATE receipts_state SET inbox_to = 9, complete_to = 0;
    UPDATE rollup_state SET complete_to = 0, generation = '{TERM}', ick = '{TERM}'
"""
COUNTS = ("gaps", "records", "skipped", "malformed", "ignored", "passed", "taken", "held_out")
C = {"kind": "total", "name": "c"}
MOVED: dict[str, object] = {**C, **dict.fromkeys(COUNTS, 0), "types": []}
MOVED |= {"from_redis_id": "0-0", "from_position": 0, "redis_id": "1-0", "position": 1}
MOVED |= {"from_version": 0}


class Write(NamedTuple):
    """A statement, with its values, and what it leaves."""

    statement: str
    values: Any
    left: str


WRITES = {
    "streamer_state": Write(
        drain.MOVE_LAST_SENT, [1, 1, 0, TERM], "SELECT last_sent_id, 1 FROM streamer_state"
    ),
    "checkpoints": Write(checkpoint.MOVE, MOVED, "SELECT position, 1 FROM checkpoints"),
    "consumer_states": Write(total.ADD, [1, 1, "c"], "SELECT rides, 1 FROM consumer_states"),
    "rating_sums": Write(stars.ADD, [1, 1, "c"], "SELECT ratings, 1 FROM rating_sums"),
    "receipts_state": Write(
        statements.COMPLETE, {"page": 10}, "SELECT complete_to / 9, 1 FROM receipts_state"
    ),
}


@pytest.fixture
def made(world: World) -> World:
    world.connection.execute(MADE)
    return world


@contextmanager
def waiting(world: World, statement: str, values: Any) -> Iterator[Future[int]]:
    """Another session runs a statement, and waits; how many rows it changed, or found."""
    connection = world.connect()

    def run() -> int:
        return connection.execute(statement.encode(), values).rowcount

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(run)
        eventually(lambda: world.waiting == 1, "the wait for the first writer")
        yield other


def test_exactly_one_of_two_writes_a_version(made: World) -> None:
    for statement, values, left in WRITES.values():
        with transaction(made) as first:
            assert first.execute(statement.encode(), values).rowcount == 1
            with waiting(made, statement, values) as second:
                first.commit()
            assert second.result() == 0
        assert (1, 1) in made.connection.execute(left.encode()).fetchall()


def test_who_waits_for_one_that_rolls_back_writes_it(made: World) -> None:
    for statement, values, left in WRITES.values():
        with transaction(made) as first:
            first.execute(statement.encode(), values)
            with waiting(made, statement, values) as second:
                first.rollback()
            assert second.result() == 1
        assert (1, 1) in made.connection.execute(left.encode()).fetchall()


def test_who_locks_a_checkpoint_that_is_moving_sees_where_it_has_moved(made: World) -> None:
    with transaction(made) as first, transaction(made) as third:
        first.execute(checkpoint.MOVE.encode(), MOVED)
        connection = made.connect()
        with ThreadPoolExecutor(1) as pool, connection.transaction():
            locked = pool.submit(connection.execute, checkpoint.LOCK, C)
            eventually(lambda: made.waiting == 1, "the wait for the first writer")
            first.commit()
            assert locked.result().rowcount == 1
            [row] = connection.execute(checkpoint.LOAD, ["total", "c"])
            assert row[:2] == ("1-0", 1)
            with pytest.raises(psycopg.errors.LockNotAvailable):  # it is the newest that is locked
                third.execute("SELECT FROM checkpoints WHERE kind = 'total' FOR SHARE NOWAIT")


@pytest.mark.parametrize("first_asks", [True, False])
def test_a_recount_that_is_asked_for_while_a_checkpoint_moves_is_not_lost(
    made: World, first_asks: bool
) -> None:
    """A person's UPDATE knows of no version."""
    ask = Write("UPDATE checkpoints SET recount = true WHERE kind = 'total'", None, "")
    writes = [ask, WRITES["checkpoints"]]
    one, other = writes if first_asks else reversed(writes)
    with transaction(made) as first:
        first.execute(one.statement.encode(), one.values)
        with waiting(made, other.statement, other.values) as second:
            first.commit()
        assert second.result() == 1
    found = "SELECT position, recount FROM current_checkpoints WHERE kind = 'total'"
    assert made.connection.execute(found).fetchall() == [(1, True)]


@pytest.mark.parametrize(
    ("statement", "values"), [(generation.HOLD, [TERM]), (generation.COMPLETE, [9, TERM])]
)
def test_a_lead_that_waits_for_its_successor_is_overtaken(
    made: World, statement: str, values: Any
) -> None:
    with transaction(made) as successor:
        successor.execute(generation.DRAW, {"new": NEXT, "before": TERM})
        with waiting(made, statement, values) as second:
            successor.commit()
        assert second.result() == 0


def test_two_loops_of_a_lead_wait_for_each_other(made: World) -> None:
    with transaction(made) as first:
        first.execute(generation.COMPLETE, [8, TERM])
        with waiting(made, generation.COMPLETE, [9, TERM]) as second:
            first.commit()
        assert second.result() == 1
    assert made.value("SELECT complete_to FROM rollup_state") == 9


def test_what_was_set_back_while_a_sweep_looked_stays_set_back(made: World) -> None:
    with transaction(made) as repair:
        repair.execute("SELECT set_back_receipts(3)")
        with waiting(made, statements.COMPLETE, {"page": 10}) as second:
            repair.commit()
        assert second.result() == 0
    assert made.connection.execute(
        "SELECT inbox_to, complete_to FROM receipts_state"
    ).fetchall() == [(2, 0)]


def test_there_is_one_row_whatever_its_version(made: World) -> None:
    for table in ("streamer_state", "rollup_state", "receipts_state"):
        made.connection.execute(f"UPDATE {table} SET version = 7".encode())
        salt = "(salt) VALUES (repeat('0', 32))"
        columns = salt if table == "receipts_state" else "DEFAULT VALUES"
        with pytest.raises(psycopg.errors.UniqueViolation):
            made.connection.execute(f"INSERT INTO {table} {columns}".encode())


def test_a_reader_and_its_state_are_there_once(made: World) -> None:
    made.connection.execute("UPDATE checkpoints SET version = 7")
    made.connection.execute("UPDATE consumer_states SET version = 7")
    add = "INSERT INTO checkpoints (kind, name) VALUES ('total', 'c')"
    assert made.connection.execute(add).rowcount == 0
    with pytest.raises(psycopg.errors.UniqueViolation):
        made.connection.execute("INSERT INTO consumer_states (name) VALUES ('c')")
    made.connection.execute("DELETE FROM checkpoints WHERE kind = 'total'")
    assert made.value("SELECT count(*) FROM consumer_states") == 0
    assert made.value("SELECT count(*) FROM readers") == 1


def test_a_checkpoint_that_is_gone_comes_back_to_its_reader(made: World) -> None:
    """As where somebody truncates them, or restores the data alone: readers come first there."""
    made.connection.execute("TRUNCATE checkpoints")
    add = "INSERT INTO checkpoints (kind, name) VALUES ('total', 'c')"
    assert made.connection.execute(add).rowcount == 1
    assert made.connection.execute(add).rowcount == 0
    assert made.value("SELECT count(*) FROM current_checkpoints") == 1


def test_what_two_loops_of_a_worker_count_at_the_same_time_counts_twice(made: World) -> None:
    made.connection.execute(statements.MAKE_WORKER, {"worker": "w"})
    values: dict[str, object] = {"worker": "w", "rides": [], "traceparents": [], "tracestates": []}
    values |= {"ignored": 1, "passed": 0}
    with transaction(made) as first:
        first.execute(statements.INBOX, values)
        with waiting(made, statements.INBOX, values) as second:
            first.commit()
        assert second.result() == 1
    assert made.value("SELECT entries_ignored FROM receipts_done") == 2
