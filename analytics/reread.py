"""Blocks whose files were changed are read again from Postgres; the rest of each file is kept.

The old files stay where they are: readers of an older version of the table go on, and a person can
compare.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from analytics import parquet
from analytics.extract import CountedRange, extract
from analytics.from_postgres import this_table
from analytics.look import Ask, Look, digests
from analytics.parquet import File
from analytics.rides import Rides
from analytics.store import Store
from unified_log.errors import Unavailable

if TYPE_CHECKING:
    import pyarrow as pa


def read_again(rides: Rides, looks: Sequence[Look]) -> tuple[list[File], list[File]]:
    """Write files with Postgres' rides of these blocks; also returns the files that they replace.

    Raises Unavailable if a file can't be read, or if these are not the rides that were looked at;
    OSError, or what Spark raises.
    """
    if not looks:
        return [], []
    warehouse = rides.warehouse
    replaced = warehouse.files_of([(look.after, look.known) for look in looks])
    store, written = warehouse.table.store, list[File]()
    for file in replaced:
        written += parquet.write(_others(store, file, looks), store)
    context, table = rides.spark, this_table(rides.connection)
    ranges = [
        CountedRange(look.after, look.known, sum(piece.rides for piece in look.of_postgres))
        for look in looks
    ]
    with rides.shown("Reading old rides again"):
        found = extract(context, rides.url, table, ranges, (), store.root).files
        now = digests(context, store.root, [_ask(look, found) for look in looks])
    if any(now[look.after] != look.postgres for look in looks):
        raise Unavailable("rides were changed while they were read again: run again")
    return [file for file in [*written, *found] if file.rides], replaced


def _ask(look: Look, files: Sequence[File]) -> Ask:
    ends = look.after, look.known
    of_these = (file for file in files if ends[0] < file.last and file.first <= ends[1])
    return Ask(*ends, look.known, tuple(file[:2] for file in of_these), ())


def _others(store: Store, file: File, looks: Sequence[Look]) -> "Iterator[pa.RecordBatch]":
    """The rides of a file that are in none of these blocks."""
    import pyarrow as pa
    from pyarrow import dataset

    number = dataset.field("id")
    outside = dataset.scalar(True)
    for look in looks:
        outside &= (number <= look.after) | (number > look.known)
    try:
        for batch in parquet.batches(store, [file[:2]], outside):
            day = pa.array([file.day] * len(batch), pa.date32())
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays([*batch.columns, day], schema=parquet.schema())
    except ValueError as error:
        raise Unavailable(f"the warehouse can't be read ({error})") from None
