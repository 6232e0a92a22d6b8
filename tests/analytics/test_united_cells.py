"""Spark unites the tables of two cells."""

import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from analytics.ledger import Ledger
from analytics.pieces import BLOCK
from analytics.warehouse import Warehouse
from cells.total import COMPLETE, INCOMPLETE, main, unite
from rocket_rides.cells import CELL_SIZE
from tests.support.warehouse import DAYS, METRE, OWNER, night
from unified_log.errors import Unavailable

if TYPE_CHECKING:
    from pyspark import SparkContext


@pytest.fixture
def cells(tmp_path: Path) -> list[Path]:
    """The warehouses of cells 0 and 2: one has had two nights, and the other one."""
    one, other = tmp_path / "cell [0]", tmp_path / "cell2"
    first = night(one, Ledger(), (DAYS[0], [1, 2]))
    night(one, first, (DAYS[0], [3]), (DAYS[1], [4]), (DAYS[1], [CELL_SIZE]))
    night(other, Ledger(), (DAYS[0], [2 * CELL_SIZE + 1]), (DAYS[1], [3 * CELL_SIZE]))
    return [one, other]


def test_all_cells_are_one_exact_total_and_one_that_is_missing_is_named(
    spark: "SparkContext", cells: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = cells
    status = unite([f"file://{other}/", str(one)], 0, "")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert status == INCOMPLETE
    assert [line[:4] for line in lines] == [
        ["0", "5", f"{5 * METRE}", f"{CELL_SIZE:,}"],
        ["2", "2", f"{2 * METRE}", f"{3 * CELL_SIZE:,}"],
        ["all", "7", f"{7 * METRE}", "the"],
        ["Missing,", "and", "not", "in"],
    ]
    assert lines[3][-1] == "1."
    assert unite([str(one)], 0, "") == COMPLETE
    assert unite([str(one)], 2, "") == INCOMPLETE


def test_a_table_that_is_not_as_it_was_proven_is_not_added(
    spark: "SparkContext", cells: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files = [
        min(cells[0].glob(f"rides/day={day}/*.parquet"), key=lambda path: path.stat().st_size)
        for day in DAYS[:2]
    ]
    assert files[0].stat().st_size == files[1].stat().st_size
    shutil.copy(*files)
    with pytest.raises(Unavailable, match="differs from what was proven, from ride 1 on"):
        unite([str(each) for each in cells], 0, "")
    files[1].unlink()
    with pytest.raises(Unavailable, match=r"cell \[0\] can't be read: .* is missing"):
        unite([str(each) for each in cells], 0, "")
    assert capsys.readouterr().out == ""


def test_a_block_that_an_approval_has_emptied_differs_from_nothing(
    spark: "SparkContext", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stays in the ledger, with no rides."""
    two_blocks = night(tmp_path, Ledger(), (DAYS[0], [1, 2]), (DAYS[1], [BLOCK + 1]))
    emptied = msgspec.structs.replace(two_blocks.blocks[1], rides=0, distance=Decimal(0))
    warehouse, ledger = Warehouse(tmp_path), two_blocks.with_blocks([emptied])
    gone = [file for file in warehouse.table.files() if file.first == BLOCK + 1]
    warehouse.publish([], warehouse.note(BLOCK + 1, ledger, OWNER), gone)
    assert unite([str(tmp_path)], 0, "") == COMPLETE
    assert f"{2 * METRE}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/nowhere"], "/nowhere has no table of rides"),
        (["nosuch://bucket"], "nosuch://... is no place for a warehouse"),
        (["{0}", "file://{0}"], "are both cell 0's, of one history: give one of them"),
    ],
)
def test_what_can_not_be_united_is_refused_in_a_sentence(
    arguments: list[str],
    said: str,
    cells: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before Spark starts."""
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["cells", *(each.format(cells[0]) for each in arguments)])
    with pytest.raises(SystemExit, match=r"^2$"):
        main()
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert told.err.startswith("no total: ")
    assert said in told.err
