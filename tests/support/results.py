"""Made-up results of a reconciliation."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from analytics import findings
from analytics.findings import Finding
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
from analytics.rows import Differing, Fields

TOTAL = Decimal("1234567.891")


def run(*consumers: Compared, **more: Any) -> Result:
    """The result of a run that compared these consumers, and found those that are wrong."""
    return Result(
        started_at=datetime(2026, 11, 21, 3, tzinfo=UTC),
        **{
            "position": 4011,
            "total": Tally(3000, TOTAL),
            "new": Tally(1000, Decimal("500000.000")),
            "consumers": list(consumers),
            "findings": [findings.of_total(each, held=False) for each in consumers if each.wrong],
            "verified": 3,
            "rides_reread": 250_000,
            "seconds": 12.34,
            **more,
        },
    )


def consumer(number: int, drift: str = "0.000", stray: bool = False) -> Compared:
    return Compared(f"consumer{number}", 4011, TOTAL + Decimal(drift), TOTAL, stray, 3000, 3000)


RIGHT = run(consumer(0), consumer(1))
DRIFTED = run(consumer(0), consumer(1, "0.001"), resets=["consumer1"], reconciliation=9)
CHECKED = run(consumer(0), consumer(1, "-0.001"), repairing=False)
WAITING = run(consumer(0), consumer(1, "0.001"))
WAITING.findings = [findings.of_total(WAITING.consumers[1], held=True)]
MISCOUNTED = run(consumer(0), consumer(1)._replace(rides=3001), resets=["consumer1"])
STRAY = run(consumer(0), consumer(1, stray=True))
# Of three rides that differ, two are named: one is gone from Postgres, one was altered in it.
TAKEN = Fields(datetime(2026, 11, 20, 9, 30, tzinfo=UTC), Decimal("539.837"))
RIDES_CHANGED = Finding(
    findings.RIDES_CHANGED, "Postgres was changed: 3 rides of 1001 to 2000 (1007 and 1008, ...)",
    True, "1000 abc", 1000, 2000, 3,
    (Differing(1007, None, TAKEN), Differing(1008, TAKEN._replace(distance=Decimal(7)), TAKEN)),
)  # fmt: skip
MISMATCHED = run(
    consumer(0),
    run=12,
    findings=[RIDES_CHANGED],
    mismatches=[
        Mismatch(1000, 2000, Tally(1000, Decimal("549.837")), Tally(999, Decimal("10.000")))
    ],
)
FILES_CHANGED = Finding(findings.WAREHOUSE_CHANGED, "the warehouse was changed: ride 7", key="0")
MISSED = Finding(findings.READER_GONE, "total consumer2 is gone", key="total consumer2")
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
    findings=[Finding(findings.MINUTES_WRONG, "2 minutes of the rollup are not the sum")],
    reconciliation=9,
)
