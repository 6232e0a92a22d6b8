"""Blocks whose files were changed are read again from Postgres; the rest of each file is kept.

The old files stay where they are: readers of an older version of the table go on, and a person can
compare.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from analytics import extract, parquet
from analytics.extract import CountedRange
from analytics.ledger import Broken
from analytics.look import Look
from analytics.parquet import File
from analytics.rides import Rides
from analytics.warehouse import Warehouse
from unified_log.errors import Unavailable

if TYPE_CHECKING:
    import pyarrow as pa


def read_again(rides: Rides, looks: Sequence[Look]) -> tuple[list[File], list[File]]:
    """Write files with Postgres' rides of these blocks; also returns the files that they replace.

    Raises Unavailable if a file can't be read, OSError, or what Spark raises.
    """
    if not looks:
        return [], []
    warehouse = rides.warehouse
    replaced = warehouse.files_of([(look.after, look.known) for look in looks])
    folder, written = warehouse.make_room(), list[File]()
    for file in replaced:
        if kept := list(_others(warehouse, file, looks)):
            written += parquet.write(kept, folder)
    context, table = rides.spark.sparkContext, extract.this_table(rides.connection)
    ranges = [
        CountedRange(look.after, look.known, sum(piece.rides for piece in look.of_postgres))
        for look in looks
    ]
    with rides.shown("Reading old rides again"):
        found, _ = extract.extract(context, rides.url, table, ranges, folder)
    return [file for file in [*written, *found] if file.rides], replaced


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
