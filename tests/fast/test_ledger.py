"""The ledger: manifests that do not follow one another, or do not add up, are not believed."""

from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from analytics.cells import Cell
from analytics.ledger import Broken, Ledger, Manifest
from analytics.result import Tally

DAY = date(2026, 11, 21)


def runs() -> list[Manifest]:
    """Three runs of one ride each: 1 to 10, 11 to 20, 21 to 30."""
    found: list[Manifest] = []
    for number in (1, 2, 3):
        cell = Cell(number * 10, number * 10, DAY, 1, Decimal(number))
        found.append(Ledger(found).next_manifest(number, number * 10, [cell]))
    return found


def with_block(manifest: Manifest, **changes: Any) -> Manifest:
    [block] = manifest.blocks
    return msgspec.structs.replace(manifest, blocks=[msgspec.structs.replace(block, **changes)])


def test_runs_that_follow_one_another_are_one_history() -> None:
    ledger = Ledger(runs())
    assert (ledger.last_ride_id, ledger.total) == (30, Tally(3, Decimal(6)))


@pytest.mark.parametrize("after", [19, 21])
def test_a_block_that_does_not_begin_where_the_last_one_ends(after: int) -> None:
    """The totals are right, and so is the end."""
    first, second, third = runs()
    with pytest.raises(Broken, match=f"ends at ride 20 and continues after ride {after}"):
        Ledger([first, second, with_block(third, after=after)])


@pytest.mark.parametrize("upto", [29, 31])
def test_a_run_that_does_not_end_where_its_last_block_does(upto: int) -> None:
    """The totals are right, and the blocks follow one another."""
    first, second, third = runs()
    with pytest.raises(Broken, match="run 3 does not add up"):
        Ledger([first, second, msgspec.structs.replace(third, upto=upto)])


@pytest.mark.parametrize("changes", [{"rides": 2}, {"distance": Decimal("3.001")}])
def test_blocks_that_do_not_come_to_the_runs_total(changes: dict[str, Any]) -> None:
    first, second, third = runs()
    with pytest.raises(Broken, match="run 3 does not add up"):
        Ledger([first, second, with_block(third, **changes)])


def test_a_run_that_is_missing_is_noticed() -> None:
    first, _, third = runs()
    with pytest.raises(Broken, match="ends at ride 10 and continues after ride 20"):
        Ledger([first, third])
