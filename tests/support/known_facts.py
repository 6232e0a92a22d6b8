"""Facts of a fleet that is well, to be changed by tests."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from watch.facts import (
    Agreement,
    Counts,
    Database,
    Facts,
    Lead,
    Log,
    Reader,
    Receipts,
    Rides,
    Rollup,
    Server,
)

NOTHING = Counts(0, 0, Decimal("0.000"), 0, 0, 0, 0, 0)
TOTAL = Reader("total", "consumer0", 1, 521, 0, 0.0, Decimal("263412.305"), 0.009, NOTHING)
WELL = Facts(
    datetime(2026, 3, 28, 20, 0, tzinfo=UTC),
    Server(True),
    Server(True),
    Database(
        rides=Rides(521, 521, 2.0, 521, 521, 0, None),
        streamer=Lead(True, 0),
        readers=(
            Reader("rollup", "rollup", 1, 521, 0, 0.0, counts=NOTHING),
            TOTAL,
            replace(TOTAL, name="consumer1"),
        ),
        agreement=Agreement(521, dict.fromkeys(("consumer0", "consumer1"), Decimal("263412.305"))),
        rollup=Rollup(Lead(True, 0), 521, 0, 0),
        receipts=Receipts(2, 521, 0, 0, 0, None, 0),
        dead_letters={},
        reconciliations=(),
    ),
    Log(521, 35_000, 0.5),
)


def but(**changes: Any) -> Facts:
    """Facts of a fleet that is well, except for these fields of its database."""
    assert WELL.database
    return replace(WELL, database=replace(WELL.database, **changes))
