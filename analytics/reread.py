"""Blocks whose files were changed are read again from Postgres; the rest of each file is kept.

The driver writes them: what somebody changed by hand is little. The old files stay where they are:
readers of an older version of the table go on, and a person can compare.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import psycopg

from analytics import extract, parquet
from analytics.ledger import Broken
from analytics.look import Look
from analytics.parquet import File
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
    folder, written = warehouse.make_room(), list[File]()
    for file in replaced:
        if kept := list(_others(warehouse, file, looks)):
            written += parquet.write(kept, folder)
    conninfo, table = extract.for_executors(url), extract.this_table(connection)
    for look in looks:
        rides = extract.RIDES_IN_RANGE.format(table=table, after=look.after, upto=look.known)
        with extract.reading(conninfo, rides) as batches:
            written += parquet.write(map(extract.in_metres, batches), folder)
    return [file for file in written if file.rides], replaced


def _others(warehouse: Warehouse, file: File, looks: Sequence[Look]) -> "Iterator[pa.RecordBatch]":
    """The rides of a file that are in none of these blocks."""
    import pyarrow as pa
    from pyarrow import dataset

    number = dataset.field("id")
    outside = dataset.scalar(True)
    for look in looks:
        outside &= (number <= look.after) | (number > look.known)
    schema = parquet.schema()
    try:
        path = str(warehouse.table.require(file))
        rides = dataset.dataset(path, schema=schema.remove(3), format="parquet").to_table(
            filter=outside
        )
    except (Broken, pa.ArrowException, OSError) as error:
        raise Unavailable(f"the warehouse can't be read ({error})") from None
    day = pa.array([file.day] * len(rides), pa.date32())
    for batch in rides.append_column(parquet.DAY, day).cast(schema).to_batches():
        if batch.num_rows:
            yield batch
