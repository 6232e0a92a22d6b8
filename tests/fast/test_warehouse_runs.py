"""The warehouse's runs, as folders: each appears as a whole, and what it supersedes is gone."""

from datetime import date
from decimal import Decimal
from pathlib import Path

from analytics.cells import Cell
from analytics.ledger import Ledger, Manifest
from analytics.warehouse import Warehouse

DAY = date(2026, 11, 21)


def manifest(number: int, before: list[Manifest], *rides: int) -> Manifest:
    cells = [Cell(ride, ride, DAY, 1, Decimal(1)) for ride in rides]
    return Ledger(before).next_manifest(number, rides[-1], cells)


def publish(warehouse: Warehouse, run: Manifest) -> list[str]:
    """In place of Spark, which would have written the rides; returns what is there then."""
    warehouse.make_ready()
    warehouse._staged.mkdir()
    warehouse.publish(run)
    return sorted(path.name for path in (warehouse.folder / "rides").iterdir())


def test_a_run_from_the_first_ride_on_supersedes_all_before_it(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    first = manifest(1, [], 10)
    assert publish(warehouse, first) == ["run=0000001"]
    assert publish(warehouse, manifest(2, [first], 20)) == ["run=0000001", "run=0000002"]
    assert publish(warehouse, manifest(3, [], 10, 20)) == ["run=0000003"]
    assert not warehouse._hidden.exists()
    assert warehouse.ledger().total.rides == 2
