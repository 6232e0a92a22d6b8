"""A closing is for good: one that was altered, or reopened, is where no total begins."""

from decimal import Decimal
from typing import Any

import psycopg
import pytest

from analytics.close import reopen as reopening
from consumers.totals.closing import LOCK, newest
from rocket_rides.locks import Lock
from tests.support.closings import (
    LONGER,
    RECOUNT,
    alter,
    begin,
    close,
    is_right,
    reopen,
    three_closed,
)
from tests.support.disasters import stranded
from tests.support.world import World, catch_up, eventually, exact, transaction
from unified_log.errors import Unavailable
from unified_log.repair import repair

CLOSINGS = "SELECT id FROM closings"
REOPEN = "SELECT reopen_closings(%s)"


@pytest.fixture
def closed(world: World) -> World:
    return three_closed(world)


def test_a_closing_is_reopened_with_all_later_ones_and_no_earlier_one(closed: World) -> None:
    for more in (4, 5):
        close(closed, closed.start + more)
    [first, *later] = (
        id_ for (id_,) in closed.connection.execute(f"{CLOSINGS} ORDER BY id").fetchall()
    )
    said = reopening(closed.connect(), later[0], "a reason")
    assert said.startswith(f"Reopened: {later[0]}, {later[1]}. ")
    assert closed.connection.execute(f"{CLOSINGS} WHERE reopened_at IS NULL").fetchall() == [
        (first,)
    ]


def test_a_closing_that_was_altered_by_hand_is_not_used(closed: World) -> None:
    for column in ("rides", "total_distance", "position"):
        number = close(closed, closed.start + 4)
        alter(closed, f"UPDATE closings SET {column} = {column} + 1 WHERE id = {number}")
        assert closed.consumer(column).standing == (closed.start + 3, Decimal(6))
    assert is_right(closed)


def test_a_closing_that_was_reopened_is_not_used(
    closed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reopen(closed, close(closed, closed.start + 4))
    assert closed.consumer().standing == (closed.start + 3, Decimal(6))
    session = closed.connect()
    execute = session.execute

    def a_little_late(query: Any, values: Any) -> Any:
        if query == LOCK:  # once this has seen it
            reopen(closed, 1)
        return execute(query, values)

    monkeypatch.setattr(session, "execute", a_little_late)
    assert newest(session, 0, closed.start + 5) is None


def test_a_closing_is_for_good(closed: World) -> None:
    for change in (
        "UPDATE closings SET rides = rides + 1",
        "UPDATE closings SET hash = repeat('0', 64)",
        "UPDATE closings SET reopened_at = now(), reopened_by = 'a', reason = 'b', rides = 0",
        "DELETE FROM closings",
        "TRUNCATE closings",
    ):
        with pytest.raises(psycopg.errors.CheckViolation, match="can't be changed or deleted"):
            closed.connection.execute(change)
    reopen(closed, 1)
    for change in (
        "UPDATE closings SET reason = 'another'",
        "UPDATE closings SET reopened_at = NULL, reopened_by = NULL, reason = NULL",
    ):
        with pytest.raises(psycopg.errors.CheckViolation, match="only reopened, once"):
            closed.connection.execute(change)


def test_who_begins_while_closings_are_reopened_begins_a_little_later(closed: World) -> None:
    with transaction(closed) as reopening:
        reopening.execute("SELECT pg_advisory_xact_lock(%s)", [Lock.CLOSINGS])
        with pytest.raises(Unavailable, match="closings are being reopened"):
            closed.consumer()
    assert closed.value("SELECT count(*) FROM checkpoints") == 0
    assert is_right(closed)


def test_reopening_waits_for_who_is_about_to_begin_and_then_reaches_it(closed: World) -> None:
    """As a repair of the log does it: its hook, and then its request for recounts."""
    reopening = closed.connect(lock_timeout="50ms")
    beginning = closed.connect()
    beginning.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    with beginning.transaction():
        begin(closed, beginning, "consumer0")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            reopening.execute(REOPEN, [closed.start + 1])
    closed.connection.execute(LONGER, [1, 1])
    reopening.execute(REOPEN, [closed.start + 1])
    closed.connection.execute(RECOUNT)
    consumer = closed.consumer()
    eventually(lambda: catch_up(consumer) == closed.truth)


def test_records_that_are_repaired_below_a_closing_reopen_it(world: World) -> None:
    """It has not counted them; so nobody begins there any more."""
    stranded(world)
    catch_up(world.consumer())
    position, _ = world.truth
    close(world, world.start + 1)
    for upto in (world.start + 2, position):
        close(world, upto, off=-20)  # without the stranded ride, as both sides say it
    records, _ = repair(world.connect())
    assert records == [world.start + 2]
    reopened = "SELECT id, reason FROM closings WHERE reopened_at IS NOT NULL"
    said = f"record {world.start + 2} was repaired"
    assert world.connection.execute(reopened).fetchall() == [(2, said), (3, said)]
    for name in ("consumer0", "late"):
        assert exact(world, world.consumer(name))
