"""The warehouse's files: written by day, and read, by pyarrow, in the driver and Spark's tasks."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from analytics import rows
from analytics.rows import Rows
from analytics.store import Store, refusal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Expression, Partitioning, WrittenFile

DAY = "day"
ROWS = 100_000  # at least, in a row group
MOST_DAYS = 4_000_000  # more than there are
# So numbers that rise, or have few digits, take a fraction of the space. Every engine can read it.
OPTIONS = {
    "use_dictionary": False,
    "column_encoding": dict.fromkeys(("id", "created_at", "distance"), "DELTA_BINARY_PACKED"),
    "store_decimal_as_integer": True,
}


NO_RIDES = "Parquet: "  # so begins what is said of a file that is not as it was written


class File(NamedTuple):
    """A file: its path below the table, and the rides in it, all of one day."""

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


def write(batches: "Iterable[pa.RecordBatch]", store: Store) -> list[File]:
    """Write rides to new files of the table in `store`, one for each day; they are on disk.

    They count once a commit names them. Raises OSError.
    """
    from pyarrow import dataset

    parquet = dataset.ParquetFileFormat()
    written: list[WrittenFile] = []
    with store.telling():
        dataset.write_dataset(
            batches,
            "",
            filesystem=store.files,
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
    store.to_disk(*(file.path for file in written))
    return [_described(file) for file in written]


def _described(file: "WrittenFile") -> File:
    groups = (file.metadata.row_group(n) for n in range(file.metadata.num_row_groups))
    ids = [group.column(0).statistics for group in groups]
    return File(
        file.path,
        file.size,
        file.metadata.num_rows,
        min(group.min for group in ids),
        max(group.max for group in ids),
        date.fromisoformat(file.path.partition("/")[0].removeprefix(f"{DAY}=")),
    )


def batches(
    store: Store, files: "Sequence[tuple[str, int]]", matching: "Expression | None" = None
) -> "Iterator[pa.RecordBatch]":
    """The rides in files, each with its path and its bytes; without their days, in any order.

    Raises ValueError if a file is not as it was written, or OSError.
    """
    from pyarrow import ArrowException, dataset

    for path, size in files:
        with store.telling():
            found = store.files.get_file_info(path)
        if not found.is_file:
            raise ValueError(f"{NO_RIDES}{path} is missing")
        if found.size != size:
            raise ValueError(f"{NO_RIDES}{path} has {found.size} bytes, not {size}")
    if not files:
        return
    try:
        paths = [path for path, _ in files]
        rides = dataset.dataset(
            paths, schema=schema().remove(3), format="parquet", filesystem=store.files
        )
        yield from rides.to_batches(filter=matching)
    except (ArrowException, OSError) as error:
        why = refusal(error)
        for path in paths:
            _require_rides(store.read(path))
        raise OSError(f"{store.root}: {why}") from None


def _require_rides(content: bytes) -> None:
    """Raise ValueError if it is this file that can't be read, and not the store."""
    from pyarrow import ArrowException, BufferReader, parquet

    try:
        parquet.read_table(BufferReader(content), schema=schema().remove(3))
    except (ArrowException, OSError) as error:
        raise ValueError(f"{NO_RIDES}{refusal(error)}") from None


def read(store: Store, files: "Sequence[tuple[str, int]]", after: int, upto: int) -> Rows:
    """The rides with `after < id <= upto` in files, in the order of their ids.

    Raises ValueError if a file is not as it was written, or OSError.
    """
    import pyarrow as pa
    from pyarrow import dataset

    number = dataset.field("id")
    found = [*batches(store, files, (number > after) & (number <= upto))]
    read_ = rows.EMPTY
    for batch in pa.Table.from_batches(found, schema().remove(3)).sort_by("id").to_batches():
        ids, created_at, metres = batch.columns
        micros = created_at.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        read_ = read_.then(rows.of_columns(ids, micros, _millimetres(metres)))
    return read_


def _millimetres(metres: "pa.Array") -> "pa.Array":
    """The same integers, without the point."""
    import pyarrow as pa

    whole = pa.Array.from_buffers(
        pa.decimal128(19, 0), len(metres), metres.buffers(), metres.null_count, metres.offset
    )
    return whole.cast(pa.int64())
