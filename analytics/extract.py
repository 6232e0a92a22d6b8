"""Extract: Spark's tasks read rides from Postgres, range by range, and write them as Parquet.

Each range is one statement in its own transaction, which takes a second or so. A task reads it
through ADBC, which uses binary COPY and returns Arrow batches, and writes these itself, a file for
each day: no ride passes through Java on its way. The driver learns of a file only when it is on
disk and its task has ended. So nobody reads what a failed task, or the second run of a task, has
left behind.

ADBC would return NUMERIC as text, so distances travel as whole millimetres. The executors need
pyarrow and the ADBC driver, but nothing of this project: the code that runs there is sent along.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pyspark import cloudpickle

from analytics import parquet
from analytics.parquet import File
from rocket_rides import session_settings
from rocket_rides.database import one_row

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from pyspark import SparkContext

LEAST_ROWS = 25_000  # in a range, unless there are fewer: starting a task takes some 50 ms
MOST_ROWS = 1_000_000
BATCH_BYTES = 4_000_000

FIRST = "SELECT min(id) FROM rides WHERE id > %s AND id <= %s"
# The last id of a range of so many rides. So ranges are equal, however many ids are unused.
END_OF_RANGE = "SELECT id FROM rides WHERE id > %s AND id <= %s ORDER BY id OFFSET %s LIMIT 1"
THE_REST = "SELECT count(*) FROM rides WHERE id > %s AND id <= %s"
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
    FROM {table} WHERE id > {after} AND id <= {upto}
"""
# No table scan for each range, even while a new table has no statistics for the planner.
SESSION = session_settings.statement(session_settings.INDEX_SCANS)


class CountedRange(NamedTuple):
    """Rides with `after < id <= upto`, and their number."""

    after: int
    upto: int
    rides: int


def cut_into_ranges(
    connection: "psycopg.Connection", after: int, upto: int, parallelism: int
) -> list[CountedRange]:
    """Cut the rides with `after < id <= upto` into ranges of equally many rides."""
    [first] = one_row(connection.execute(FIRST, [after, upto]))
    if first is None:
        return []
    rows = min(max((upto - first) // (2 * parallelism), LEAST_ROWS), MOST_ROWS)
    ranges = []
    while row := connection.execute(END_OF_RANGE, [after, upto, rows - 1]).fetchone():
        ranges.append(CountedRange(after, row[0], rows))
        after = row[0]
    rest = connection.execute(THE_REST, [after, upto]).fetchone()
    if rest is not None and rest[0]:
        ranges.append(CountedRange(after, upto, rest[0]))
    return ranges


def this_table(connection: "psycopg.Connection", name: str = "rides") -> str:
    """The full, quoted name of the table that this connection sees under a name."""
    full: str = one_row(connection.execute(THIS_TABLE, [name]))[0]
    return full


def for_executors(url: str, *modules: ModuleType) -> str:
    """The database's URL for code on executors; this module and `modules` are sent with it."""
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
) -> list[File]:
    """Write the rides in `ranges` to files below `folder`."""
    task = partial(_write, for_executors(url, parquet), table, folder)
    files = spark.parallelize(ranges, len(ranges)).flatMap(task).collect()
    return [File(*file) for file in files]


def _write(url: str, table: str, folder: Path, ends: CountedRange) -> list[File]:
    """Write one range. Runs on an executor."""
    rides = RIDES_IN_RANGE.format(table=table, after=ends.after, upto=ends.upto)
    with reading(url, rides) as batches:
        return parquet.write(map(in_metres, batches), folder)


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
