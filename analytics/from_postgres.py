"""How Spark's tasks read from Postgres: through ADBC, by binary COPY, as Arrow batches.

No ride passes through Java on its way. ADBC would return NUMERIC as text, so distances travel as
whole millimetres. The executors need pyarrow, the ADBC driver and delta-rs, but nothing of this
project: the code that runs there is sent along. So what a task uses is named, function by function:
a module that is named as a whole would take along all that it imports.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from analytics import minutes, parquet, rows, store
from analytics.rows import Rows
from unified_log import session_settings
from unified_log.database import one_row

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

BATCH_BYTES = 4_000_000

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


def this_table(connection: "psycopg.Connection", name: str = "rides") -> str:
    """The full, quoted name of the table that this connection sees under a name."""
    full: str = one_row(connection.execute(THIS_TABLE, [name]))[0]
    return full


def for_executors(url: str, *modules: ModuleType) -> str:
    """The database's URL for code on executors; our modules and `modules` are sent with it."""
    options: dict[str, Any] = {
        "application_name": "reconciler",
        "connect_timeout": 10,
        **session_settings.CONNECTION,
    }
    if given := os.environ.get("PGOPTIONS"):  # the executors do not have the driver's
        options = {"options": given, **conninfo_to_dict(url), **options}
    send_along(*modules)
    return make_conninfo(url, **options)


def send_along(*modules: ModuleType) -> None:
    """Have Spark send these modules' code with its tasks, and what reads and adds up files."""
    from pyspark import cloudpickle

    for module in (sys.modules[__name__], minutes, parquet, rows, store, *modules):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


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


def read(url: str, table: str, after: int, upto: int) -> Rows:
    """The rides with `after < id <= upto` in Postgres, in the order of their ids."""
    found = rows.EMPTY
    with reading(url, RIDES_IN_RANGE.format(table=table, after=after, upto=upto)) as batches:
        for batch in batches:
            found = found.then(as_rows(batch))
    return found
