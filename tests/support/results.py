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
    Tally,
    WrongMinute,
    WrongRides,
)

TOTAL = Decimal("1234567.891")


def run(*consumers: Compared, **more: Any) -> Result:
    """The result of a run that compared these consumers."""
    return Result(
        started_at=datetime(2026, 11, 21, 3, tzinfo=UTC),
        **{
            "position": 4011,
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
    receipts=ReceiptsVerdict(4001, 3000, WrongRides(12, (7, 9)), WrongRides(1, (99,))),
    outbox=OutboxVerdict(5, WrongRides(1, (3,)), WrongRides(2, (8, 9)), WrongRides(1, (4,))),
    requested=True,
    reconciliation=9,
)
