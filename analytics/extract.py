"""Extract: Spark's tasks read rides from Postgres, range by range, and write them as Parquet.

Each range is one statement in its own transaction, which takes a second or so. A task reads it
through ADBC, which uses binary COPY and returns Arrow batches, and writes these itself, a file for
each day: no ride passes through Java on its way. The driver learns of a file only when it is on
disk and its task has ended. So nobody reads what a failed task, or the second run of a task, has
left behind. A task also takes the digest of each block in its range, of what Postgres said.

ADBC would return NUMERIC as text, so distances travel as whole millimetres. The executors need
pyarrow and the ADBC driver, but nothing of this project: the code that runs there is sent along.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from analytics import parquet, rows
from analytics.parquet import File
from analytics.pieces import BLOCK
from analytics.rows import Rows
from unified_log import session_settings
from unified_log.database import one_row

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from pyspark import SparkContext

# In a range, unless there are fewer. A file of so many rides of one day is some 0.4 to 4 MB.
LEAST_ROWS = 100_000
MOST_ROWS = 1_000_000
BATCH_BYTES = 4_000_000

ROWS_BY_BLOCK = """
    SELECT (id - 1) / {block}, count(*) FROM {table} WHERE id > %s AND id <= %s
    GROUP BY 1 ORDER BY 1
"""
# The table that this session sees: with another search path, a session may see another one.
THIS_TABLE = """
    SELECT format('%%I.%%I', nspname, relname)
    FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
    WHERE pg_class.oid = %s::regclass
"""
# Postgres has earlier and later times, and infinity; Python's end here.
RIDES_IN_RANGE = """
    SELECT id, greatest(least(created_at, '9999-12-31 00:00+00'), '0001-01-01 00:00+00'),
           (distance * 1000)::bigint AS millimetres
    FROM {table} WHERE id > {after} AND id <= {upto} ORDER BY id
"""
# No table scan for each range, even while a new table has no statistics for the planner.
SESSION = session_settings.statement(session_settings.INDEX_SCANS)


class CountedRange(NamedTuple):
    """Rows with `after < id <= upto`, and their number. No block lies in two ranges."""

    after: int
    upto: int
    rows: int


def cut_into_ranges(
    connection: "psycopg.Connection", after: int, upto: int, parallelism: int, table: str = "rides"
) -> list[CountedRange]:
    """Cut the rows with `after < id <= upto` into ranges of about equally many, of whole blocks.

    How many is a matter of the rows, hardly of the machine: many cores would make many small files.
    """
    statement = ROWS_BY_BLOCK.format(block=BLOCK, table=table)
    blocks = connection.execute(statement, [after, upto]).fetchall()
    share = sum(count for _, count in blocks) // (2 * parallelism)
    enough = min(max(share, LEAST_ROWS), MOST_ROWS)
    ranges: list[CountedRange] = []
    for number, count in blocks:
        end = min((number + 1) * BLOCK, upto)
        if ranges and ranges[-1].rows + count <= enough:
            ranges[-1] = ranges[-1]._replace(upto=end, rows=ranges[-1].rows + count)
        else:
            ranges.append(CountedRange(ranges[-1].upto if ranges else after, end, count))
    return ranges


def this_table(connection: "psycopg.Connection", name: str = "rides") -> str:
    """The full, quoted name of the table that this connection sees under a name."""
    full: str = one_row(connection.execute(THIS_TABLE, [name]))[0]
    return full


def for_executors(url: str, *modules: ModuleType) -> str:
    """The database's URL for code on executors; this module and `modules` are sent with it."""
    from pyspark import cloudpickle

    options: dict[str, Any] = {
        "application_name": "reconciler",
        "connect_timeout": 10,
        **session_settings.CONNECTION,
    }
    if given := os.environ.get("PGOPTIONS"):  # the executors do not have the driver's
        options = {"options": given, **conninfo_to_dict(url), **options}
    for module in (sys.modules[__name__], *modules):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return make_conninfo(url, **options)


def extract(
    spark: "SparkContext", url: str, table: str, ranges: list[CountedRange], folder: Path
) -> tuple[list[File], dict[int, str]]:
    """Write the rides in `ranges` to files below `folder`; also returns the digest of each block.

    A block that begins before the first range has the digest of its rides in there.
    """
    task = partial(_write, for_executors(url, parquet, rows), table, folder)
    done = spark.parallelize(ranges, len(ranges)).map(task).collect()
    files = [File(*file) for written, _ in done for file in written]
    return files, {number: digest for _, digests in done for number, digest in digests.items()}


def _write(
    url: str, table: str, folder: Path, ends: CountedRange
) -> tuple[list[File], dict[int, str]]:
    """Write one range. Runs on an executor."""
    rides = RIDES_IN_RANGE.format(table=table, after=ends.after, upto=ends.upto)
    kept: list[Rows] = []
    with reading(url, rides) as batches:
        files = parquet.write(_converted(batches, kept), folder)
    read = reduce(Rows.then, kept, rows.EMPTY)
    numbers = sorted({(ride - 1) // BLOCK for ride in read.ids})
    return files, {number: read.digest(number * BLOCK, (number + 1) * BLOCK) for number in numbers}


def _converted(batches: "Iterable[pa.RecordBatch]", kept: list[Rows]) -> "Iterator[pa.RecordBatch]":
    for batch in batches:
        kept.append(as_rows(batch))
        yield in_metres(batch)


def as_rows(rides: "pa.RecordBatch") -> Rows:
    """A batch of RIDES_IN_RANGE."""
    import pyarrow as pa

    number, created_at, millimetres = rides.columns
    micros = created_at.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return rows.of_columns(number, micros, millimetres)


@contextmanager
def reading(url: str, statement: str) -> "Iterator[pa.RecordBatchReader]":
    """What a statement returns, in Arrow's batches. For an executor."""
    from adbc_driver_postgresql import StatementOptions, dbapi

    size = {StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)}
    connecting = dbapi.connect(url, autocommit=True)  # noqa: TID251
    with connecting as connection, connection.cursor() as cursor:
        cursor.execute(SESSION)
        cursor.adbc_statement.set_options(**size)
        cursor.execute(statement)
        yield cursor.fetch_record_batch()


def in_metres(rides: "pa.RecordBatch") -> "pa.RecordBatch":
    """Convert a batch of RIDES_IN_RANGE to the warehouse's columns."""
    import pyarrow as pa

    number, created_at, millimetres = rides.columns
    whole = millimetres.cast(pa.decimal128(19, 0))
    # The same integers, with the point three digits further to the left.
    metres = pa.Array.from_buffers(pa.decimal128(12, 3), len(whole), whole.buffers())
    day = created_at.cast(pa.timestamp("us")).cast(pa.date32())
    columns = [number, created_at.cast(pa.timestamp("us", "UTC")), metres, day]
    return pa.RecordBatch.from_arrays(columns, schema=parquet.schema())
