"""The warehouse's files: written by day, through pyarrow, in the driver and in Spark's tasks."""

import os
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Partitioning, WrittenFile

DAY = "day"
ROWS = 100_000  # at least, in a row group
MOST_DAYS = 4_000_000  # more than there are
# So numbers that rise, or have few digits, take a fraction of the space. Every engine can read it.
OPTIONS = {
    "use_dictionary": False,
    "column_encoding": dict.fromkeys(("id", "created_at", "distance"), "DELTA_BINARY_PACKED"),
    "store_decimal_as_integer": True,
}


class File(NamedTuple):
    """A file: its path below the folder that it is in, and the rides in it, all of one day."""

    path: str
    size: int  # bytes
    rides: int
    first: int
    last: int
    day: date  # UTC


def schema() -> "pa.Schema":
    """The columns of the table `rides`; distances in metres. A file leaves out its day."""
    import pyarrow as pa

    return pa.schema(
        {
            "id": pa.int64(),
            "created_at": pa.timestamp("us", "UTC"),
            "distance": pa.decimal128(12, 3),
            DAY: pa.date32(),
        }
    )


def by_day() -> "Partitioning":
    """A folder for each day: day=2026-11-21."""
    import pyarrow as pa
    from pyarrow import dataset

    return dataset.partitioning(pa.schema({DAY: pa.date32()}), flavor="hive")


def write(batches: "Iterable[pa.RecordBatch]", folder: Path) -> list[File]:
    """Write rides to new files below `folder`, one for each day; they are on disk."""
    from pyarrow import dataset

    parquet = dataset.ParquetFileFormat()
    written: list[WrittenFile] = []
    dataset.write_dataset(
        batches,
        folder,
        schema=schema(),
        format=parquet,
        file_options=parquet.make_write_options(**OPTIONS),
        partitioning=by_day(),
        basename_template=f"part-{{i}}-{uuid4().hex}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        max_partitions=MOST_DAYS,
        min_rows_per_group=ROWS,
        preserve_order=True,
        use_threads=False,
        file_visitor=written.append,
    )
    return [_described(file, folder) for file in written]


def _described(file: "WrittenFile", folder: Path) -> File:
    to_disk(Path(file.path))
    path = Path(file.path).relative_to(folder)
    groups = (file.metadata.row_group(n) for n in range(file.metadata.num_row_groups))
    ids = [group.column(0).statistics for group in groups]
    return File(
        str(path),
        file.size,
        file.metadata.num_rows,
        min(group.min for group in ids),
        max(group.max for group in ids),
        date.fromisoformat(path.parent.name.removeprefix(f"{DAY}=")),
    )


def to_disk(path: Path) -> None:
    """Sync a file, or a folder's names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
