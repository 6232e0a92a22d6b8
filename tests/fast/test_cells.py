"""Which cell a table is of, and what is said of all cells together."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.ledger import Closing, Ledger, Owner
from analytics.pieces import Piece
from cells import total
from cells.total import OpenTable
from rocket_rides.cells import CELL_SIZE
from unified_log.errors import Unavailable

OWNER = Owner(0, "1-1", "a")
NIGHT = datetime(2026, 11, 21, 3, tzinfo=UTC)
METRE, MOST = Decimal(1), Decimal("9" * 35 + ".999")  # the most that a total can be


def ledger(ids: Sequence[int], owner: Owner = OWNER, distance: Decimal = METRE) -> Ledger:
    rides = [Piece(id_, id_, 1, distance) for id_ in ids]
    return Ledger().extended(max(ids, default=0), rides).after_run(1, owner)


def table(cell: int, name: str = "", owner: Owner = OWNER, distance: Decimal = METRE) -> OpenTable:
    known = ledger([cell * CELL_SIZE + 1], owner, distance)
    return OpenTable(name or f"/cell{cell}", cell, known, NIGHT - timedelta(cell), "", [])


@pytest.mark.parametrize(
    ("ids", "cell"),
    [
        ([1], 0),
        ([1, CELL_SIZE], 0),
        ([CELL_SIZE + 1, 2 * CELL_SIZE], 1),
        ([89 * CELL_SIZE + 1, 90 * CELL_SIZE], 89),
    ],
)
def test_a_table_is_of_the_cell_whose_ids_its_rides_have(ids: list[int], cell: int) -> None:
    assert total.cell_of("/here", ledger(ids)) == cell


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        ([], "no rides yet"),
        ([CELL_SIZE, CELL_SIZE + 1], "rides of the cells 0, 1"),
        ([90 * CELL_SIZE + 1], "rides of the cells 90"),
    ],
)
def test_a_table_that_is_not_one_cells_is_refused(ids: list[int], why: str) -> None:
    with pytest.raises(Unavailable, match=f"^/here has {why}; it needs those of one cell"):
        total.cell_of("/here", ledger(ids))


@pytest.mark.proves("cells-once")
@pytest.mark.parametrize(
    ("owner", "histories"),
    [
        (Owner(5, "1-1", "a"), "of one history"),
        (Owner(0, "1-1", "b"), "of different histories"),
        (Owner(0, "2-1", "a"), "of different histories"),
    ],
)
def test_two_tables_of_one_cell_are_never_added(owner: Owner, histories: str) -> None:
    tables = [table(0), table(1), table(2, "/a"), table(2, "/b", owner=owner)]
    total.require_one_of_each(tables[:3])
    with pytest.raises(Unavailable, match=f"^/a and /b are both cell 2's, {histories}: give one"):
        total.require_one_of_each(tables)


def test_the_total_is_exact_and_as_old_as_the_oldest_cell() -> None:
    tables = [table(cell, distance=MOST) for cell in (0, 2)]
    *lines, missing = total.report(tables, {1, 3})
    each = f"{MOST:,.3f}"
    assert [line.split() for line in lines[1:]] == [
        ["0", "1", each, "1", "2026-11-21", "03:00:00"],
        ["2", "1", each, f"{2 * CELL_SIZE + 1:,}", "2026-11-19", "03:00:00"],
        ["all", "2", "1" + each[:-1] + "8", "the", "oldest:", "2026-11-19", "03:00:00"],
    ]
    assert missing == "Missing, and not in the total: 1, 3."


def test_what_each_cell_has_closed_is_told() -> None:
    """But for what was reopened."""
    closings = [
        Closing(number, 10 * number, number, Decimal(number), "", NIGHT, "", number == 3)
        for number in (1, 2, 3)
    ]
    one, other = table(0), table(1)
    closed = other._replace(ledger=other.ledger.with_closings(closings))
    *_, said = total.report([one, closed], set())
    assert said == "Cell 1 has 2 closings, the newest up to position 20: 2 rides, 2.000 m."
