"""Blocks whose files were changed are read again from Postgres; the rest of each file is kept.

The driver writes them: what somebody changed by hand is little. The old files stay where they are:
readers of an older version of the table go on, and a person can compare.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import psycopg

from analytics import parquet
from analytics.from_postgres import (
    RIDES_IN_RANGE,
    for_executors,
    in_metres,
    reading,
    this_table,
)
from analytics.look import Look
from analytics.parquet import File
from analytics.store import Store
from analytics.warehouse import Warehouse
from unified_log.errors import Unavailable

if TYPE_CHECKING:
    import pyarrow as pa


def read_again(
    connection: psycopg.Connection, url: str, warehouse: Warehouse, looks: Sequence[Look]
) -> tuple[list[File], list[File]]:
    """Write files with Postgres' rides of these blocks; also returns the files that they replace.

    Raises Unavailable if a file can't be read, or OSError.
    """
    if not looks:
        return [], []
    replaced = warehouse.files_of([(look.after, look.known) for look in looks])
    store, written = warehouse.table.store, list[File]()
    for file in replaced:
        if kept := list(_others(store, file, looks)):
            written += parquet.write(kept, store)
    conninfo, table = for_executors(url), this_table(connection)
    for look in looks:
        rides = RIDES_IN_RANGE.format(table=table, after=look.after, upto=look.known)
        with reading(conninfo, rides) as batches:
            written += parquet.write(map(in_metres, batches), store)
    return [file for file in written if file.rides], replaced


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
