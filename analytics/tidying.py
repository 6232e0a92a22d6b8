"""Keeps the warehouse in few files: small ones are merged, and what no version needs is removed.

Readers are not disturbed: a merged file stays for as long as a version that names it. What a crash
leaves behind is named by no version, and goes with the others.

`optimize.compact` of delta-rs does not keep the rides in order, and names a merged file before it
is on disk: a loss of power could leave a warehouse that only `--full` repairs.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from analytics import parquet
from analytics.ledger import Broken
from analytics.parquet import DAY, File
from analytics.steps import Step
from analytics.warehouse import Warehouse
from rocket_rides.errors import Unavailable
from rocket_rides.faults import reached

SMALL = 8_000_000  # bytes; more than a million rides
MOST = 16  # small files of the newest day, which will get more; a day that is over keeps one
UNTIDY = (Broken, Unavailable, DeltaError, pa.ArrowException, OSError)


def tidy(warehouse: Warehouse, now: datetime | None = None) -> None:
    """Merge small files, and remove what nobody has needed for long. Raises UNTIDY."""
    if crowded := list(crowded_days(warehouse.table.files())):
        merge(warehouse, crowded, now or datetime.now(UTC))
    warehouse.table.forget()
    warehouse.forget_hidden()


def crowded_days(files: Iterable[File]) -> Iterator[list[File]]:
    """The files to merge into one, day by day, in order of their rides."""
    small: dict[date, list[File]] = {}
    for file in sorted(files, key=lambda file: (file.day, file.first)):
        small.setdefault(file.day, [])
        if file.size < SMALL:
            small[file.day].append(file)
    newest = max(small, default=None)
    for day, found in small.items():
        if len(found) > (MOST if day == newest else 1):
            yield found


def merge(warehouse: Warehouse, days: list[list[File]], now: datetime) -> None:
    """Replace each day's files by one with the same rides, in one transaction."""
    merged = [_merged(warehouse, files) for files in days]
    at = int(now.timestamp() * 1000)
    replaced = [
        RemoveAction(file.path, False, at, file.size, {DAY: str(file.day)})
        for files in days
        for file in files
    ]
    reached(Step.BEFORE_MERGE)
    warehouse.table.commit([*replaced, *merged], "append")
    reached(Step.AFTER_MERGE)


def _merged(warehouse: Warehouse, files: list[File]) -> AddAction:
    """Write the rides of these files to one file, batch by batch."""
    table = warehouse.table
    rides = ds.dataset(
        [table.require(file) for file in files],
        schema=parquet.schema(),
        format="parquet",
        partitioning=parquet.by_day(),
        partition_base_dir=str(table.folder),
    )
    [merged] = parquet.write(rides.to_batches(), warehouse.staged)
    if merged.rides != sum(file.rides for file in files):
        raise Broken(f"the files of {merged.day} don't hold the rides that they should")
    return table.place(warehouse.staged, merged, new=False)
