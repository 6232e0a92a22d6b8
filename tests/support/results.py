"""Made-up results of a reconciliation."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from analytics.result import (
    Compared,
    Mismatch,
    OutboxVerdict,
    ReceiptsVerdict,
    Result,
    RollupVerdict,
    Some,
    Tally,
    WrongMinute,
)

NOTES = ["The warehouse was new.", "A <b>second</b> note."]
TOTAL = Decimal("1234567.891")
# 38 digits, which neither a float nor Python's usual decimal context holds.
HUGE = Decimal("98765432109876543210987654321098765.432")
HUGE_WRITTEN = "98,765,432,109,876,543,210,987,654,321,098,765.432"
ESCAPES = "a\x1b[31m\u202e"


def run(*consumers: Compared, **more: Any) -> Result:
    """The result of a run that compared these consumers."""
    return Result(
        started_at=datetime(2026, 11, 21, 3, tzinfo=UTC),
        **{
            "last_ride_id": 4011,
            "total": Tally(3000, TOTAL),
            "new": Tally(1000, Decimal("500000.000")),
            "consumers": list(consumers),
            "verified": 3,
            "seconds": 12.34,
            **more,
        },
    )


def consumer(number: int, drift: str = "0.000", stray: bool = False) -> Compared:
    return Compared(f"consumer{number}", 4011, TOTAL + Decimal(drift), TOTAL, stray)


RIGHT = run(consumer(0), consumer(1))
DRIFTED = run(consumer(0), consumer(1, "0.001"), resets=["consumer1"], reconciliation=9)
CHECKED = run(consumer(0), consumer(1, "-0.001"), repairing=False)
STRAY = run(consumer(0), consumer(1, stray=True))
MISMATCHED = run(
    consumer(0),
    mismatches=[
        Mismatch(1000, 2000, Tally(999, Decimal("10.000")), Tally(1000, Decimal("549.837")))
    ],
)
EMPTY = Result(datetime(2026, 11, 21, 3, tzinfo=UTC))
OUTCOMES = [
    (RIGHT, "consumer1", "0.000", "agrees", "All totals agree."),
    (
        DRIFTED,
        "consumer1",
        "+0.001",
        "wrong: reset requested",
        "1 of 2 consumers was wrong and will be reset.",
    ),
    (
        CHECKED,
        "consumer1",
        "-0.001",
        "wrong: not repaired (--check)",
        "1 of 2 consumers is wrong; nothing was repaired (--check).",
    ),
    (
        STRAY,
        "consumer1",
        "0.000",
        "stands past every ride sent",
        "1 of 2 consumers is wrong; none will be reset.",
    ),
]


def tells_the_way_out(text: str) -> None:
    """Fails unless a person who reads of MISMATCHED learns what to do."""
    assert "Postgres is right; no resets were requested." in text
    assert "python -m analytics.reconcile --full" in text
    assert "The warehouse and Postgres disagree: nothing was repaired." in text


def tells_that_there_was_nothing(text: str) -> None:
    """Fails unless a person who reads of EMPTY learns that nothing was compared."""
    assert "No consumers" in text
    assert "No rides yet." in text
    assert "There is no consumer to compare." in text
    assert "agree." not in text


def moves_no_cursor(text: str) -> None:
    """Fails unless the name ESCAPES is shown, and its control characters are not."""
    assert "a\\x1b[31m\\u202e" in text
    assert not {"\x1b", "\u202e"} & set(text)


MINUTE = datetime(2026, 11, 21, 2, 7, tzinfo=UTC)
PROVED = run(
    consumer(0),
    rollup=RollupVerdict(4000, 1440),
    receipts=ReceiptsVerdict(4011, 3000),
    outbox=OutboxVerdict(5),
)
UNPROVED = run(
    consumer(0),
    rollup=RollupVerdict(
        4000,
        1440,
        [
            WrongMinute(MINUTE, Tally(2, Decimal("2.001")), Tally(2, Decimal(2)), 3),
            WrongMinute(MINUTE + timedelta(minutes=1), None, Tally(1, Decimal(5)), 5),
        ],
        set_aside=1,
    ),
    receipts=ReceiptsVerdict(4001, 3000, Some(12, (7, 9)), Some(1, (99,))),
    outbox=OutboxVerdict(5, Some(1, (3,)), Some(2, (8, 9)), Some(1, (4,))),
    requested=True,
    reconciliation=9,
)
