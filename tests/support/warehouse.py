"""A warehouse's nights without Spark and Postgres: a file for each day, as tasks would write it."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from analytics import parquet
from analytics.ledger import Ledger, Owner
from analytics.parquet import File
from analytics.pieces import Piece
from analytics.result import Tally
from analytics.table import Table
from analytics.warehouse import Warehouse
from tests.support.object_stores import root_of

DAY_ONE = date(2026, 11, 1)
DAYS = [DAY_ONE + timedelta(number) for number in range(4)]
METRE = Decimal("1.001")
OWNER = Owner(0, "1-1", "a")


def write(warehouse: Warehouse, day: date, ids: Sequence[int]) -> tuple[Piece, list[File]]:
    """In place of Spark's tasks: a file with these rides, which nothing names yet."""
    columns = [
        pa.array(ids, pa.int64()),
        pa.array([datetime(day.year, day.month, day.day, tzinfo=UTC)] * len(ids)),
        pa.array([METRE] * len(ids)),
        pa.array([day] * len(ids)),
    ]
    schema = parquet.schema()
    columns = [column.cast(type_) for column, type_ in zip(columns, schema.types, strict=True)]
    rides = pa.RecordBatch.from_arrays(columns, schema=schema)
    piece = Piece(ids[0], ids[-1], len(ids), METRE * len(ids))
    return piece, parquet.write([rides], warehouse.table.store)


def night(
    folder: Path,
    base: Ledger,
    *rides: tuple[date, Sequence[int]],
    tidied: bool = True,
) -> Ledger:
    """A night that finds these rides new; returns what the warehouse holds then."""
    warehouse = Warehouse(root_of(folder))
    written = [write(warehouse, day, ids) for day, ids in rides]
    pieces = [piece for piece, _ in written]
    ledger = base.extended(max((piece.last for piece in pieces), default=base.position), pieces)
    if not base.position:
        warehouse.table.make_way()
    files = [file for _, files in written for file in files]
    warehouse.publish(files, warehouse.note(base.position, ledger, OWNER))
    if tidied:
        warehouse.tidy()
    return ledger


def held(folder: Path) -> Ledger:
    """What the table holds, as its newest run has left it."""
    warehouse = Warehouse(root_of(folder))
    night = warehouse.committed_run()
    return warehouse.table.ledger(night.ledger) if night else Ledger()


def nights(folder: Path, count: int) -> Ledger:
    ledger = Ledger()
    for number in range(count):
        ledger = usual(folder, ledger, number)
    return ledger


def usual(folder: Path, base: Ledger, number: int) -> Ledger:
    """A night that finds two rides of its day, and one of the next."""
    one, two, three = (3 * number + ride for ride in (1, 2, 3))
    return night(folder, base, (DAYS[number], [one, two]), (DAYS[number + 1], [three]))


def table(folder: Path) -> Table:
    return Warehouse(root_of(folder)).table


def delta(folder: Path, version: int | None = None) -> DeltaTable:
    return DeltaTable(f"{root_of(folder)}/rides", version)


def content(folder: Path) -> Tally:
    """As delta-rs reads it."""
    distances = delta(folder).to_pyarrow_table(columns=["distance"])["distance"]
    return Tally(len(distances), pc.sum(distances).as_py() or Decimal(0))
