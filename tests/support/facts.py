"""Made-up facts: a fleet in which all is well, and ways to change that."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from watch.absence import expected
from watch.facts import (
    Agreement,
    Counts,
    Database,
    DeadReceipt,
    Facts,
    HeldOut,
    Lead,
    Log,
    Reader,
    Receipts,
    Reconciliation,
    Rides,
    Rollup,
    Server,
)
from watch.runs import AGREED, HELD, PARTS, CompletedRun, Finding, Run

MOMENT = datetime(2025, 11, 22, 14, 3, 22, tzinfo=UTC)
TOTAL = Decimal("6344236.123")
AWAY = Server(False, "connection refused")


def counts(**changed: Any) -> Counts:
    none = Counts(0, 0, Decimal(0), 0, 0, 0, 0, 0, 0)
    return replace(none, **changed)


def total(name: str = "consumer0", **changed: Any) -> Reader:
    reader = Reader("total", name, 1, 12_345, 0, 0.0, TOTAL, 0.012, counts())
    return replace(reader, **changed)


def rollup(**changed: Any) -> Reader:
    return replace(Reader("rollup", "rollup", 1, 12_345, 0, 0.0, counts=counts()), **changed)


def dead_receipt(ride: int = 200, **changed: Any) -> DeadReceipt:
    letter = DeadReceipt(ride, 1, "status 422: never", MOMENT - timedelta(minutes=ride % 59))
    return replace(letter, **changed)


def held_out(position: int = 521, **changed: Any) -> HeldOut:
    record = HeldOut(
        "total", "consumer0", position, "ride.create", "too long", 1, MOMENT - timedelta(minutes=2)
    )
    return replace(record, **changed)


def receipts(**changed: Any) -> Receipts:
    return replace(Receipts(2, 12_300, 0, 0, 0, None, 0), **changed)


def reconciliation(number: int = 1, **changed: Any) -> Reconciliation:
    at = MOMENT - timedelta(hours=11, days=number)
    return replace(Reconciliation(number, at, 11_000, 9_000, TOTAL, {}), **changed)


def completed_run(number: int = 7, **changed: Any) -> CompletedRun:
    """One that ended eleven hours ago, and for which everything agreed."""
    ended, looked = MOMENT - timedelta(hours=11), MOMENT - timedelta(days=20)
    well = CompletedRun(number, AGREED, ended, 11_000, dict.fromkeys(PARTS, AGREED))
    return replace(well, **{"oldest_look": looked, **changed})


def failed_run(number: int = 8, **changed: Any) -> Run:
    """One that failed two hours ago."""
    return replace(Run(number, MOMENT - timedelta(hours=2), "Spark is away"), **changed)


def finding(kind: str = "rides_changed", **changed: Any) -> Finding:
    """One that is held."""
    about = "Postgres has 3 other rides than the warehouse: 17, 18, 19"
    return replace(Finding(kind, "warehouse", True, about), **changed)


def held_run(**changed: Any) -> CompletedRun:
    """One that held a finding."""
    held = completed_run(
        status=HELD,
        verdicts=dict.fromkeys(PARTS, AGREED) | {"warehouse": HELD},
        findings=(finding(),),
        open={"rides_changed": 1},
        held=1,
    )
    return replace(held, **changed)


def database(**changed: Any) -> Database:
    """The facts of Postgres when all is well."""
    readers = (total("consumer0"), total("consumer1"), rollup())
    well = Database(
        rides=Rides(12_345, 12_345, 2.1, 12_345, 12_345, 0, None),
        streamer=Lead(True, 0),
        readers=readers,
        agreement=Agreement(12_345, {"consumer0": TOTAL, "consumer1": TOTAL}),
        rollup=Rollup(Lead(True, 0), 12_345, 0, 0),
        receipts=receipts(),
        malformed_entries={},
        reconciliations=(reconciliation(),),
        completed_run=completed_run(),
    )
    return replace(well, **changed)


def facts(seconds: float = 0, **changed: Any) -> Facts:
    """Facts as of so many seconds after MOMENT; `changed` are fields of the database."""
    at = MOMENT + timedelta(seconds=seconds)
    log = Log(1_204, 213_000, 0.4)
    return Facts(at, Server(True), Server(True), database(**changed), log)


WELL, A_TOTAL = facts(), total()


def absent(seen: Facts, seconds: float) -> Facts:
    """The same facts, where whatever is missing has been missing for so many seconds."""
    assert seen.database
    missing = {who: seconds for who, is_there in expected(seen.database) if not is_there}
    return replace(seen, database=replace(seen.database, absent=missing))
