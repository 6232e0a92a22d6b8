"""Reads rides from Postgres into Spark: a Python Data Source that reads ranges of ids through ADBC.

Each range is one statement in its own transaction, which takes a second or so. ADBC uses binary
COPY and returns Arrow batches; it would return NUMERIC as text, so distances travel as whole
millimetres. The executors need pyarrow and the ADBC driver, but nothing of this project: the code
that runs there is sent along.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from rocket_rides.database import CONNECTION, INDEX_SCANS, one_row

if TYPE_CHECKING:
    import psycopg
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

LEAST_ROWS = 25_000  # in a range, unless there are fewer: a task alone costs some 50 ms
MOST_ROWS = 1_000_000
BATCH_BYTES = 4_000_000

# The end of a range of so many rides: balanced, however many ids are unused. An index-only scan.
END_OF_RANGE = "SELECT id FROM rides WHERE id > %s AND id <= %s ORDER BY id OFFSET %s LIMIT 1"
THE_REST = "SELECT count(*) FROM rides WHERE id > %s AND id <= %s"
# The table that this session sees; another session's search path may lead to another one.
THIS_TABLE = """
    SELECT format('%I.%I', nspname, relname)
    FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
    WHERE pg_class.oid = 'rides'::regclass
"""
RIDES_IN_RANGE = """
    SELECT id, created_at, (distance * 1000)::bigint AS millimetres
    FROM {table} WHERE id > {after} AND id <= {upto}
"""
# Postgres has earlier and later times, including infinity; Python's dates end here.
FIRST, LAST = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31'"
# No table scan for each range, even if the planner has no statistics of a new table.
SETTINGS = INDEX_SCANS | {"statement_timeout": "0"}
SESSION = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())


class CountedRange(NamedTuple):
    """Rides with `after < id <= upto`, and their number."""

    after: int
    upto: int
    rides: int


def cut_into_ranges(
    connection: "psycopg.Connection", after: int, upto: int, parallelism: int
) -> list[CountedRange]:
    """Cut the rides with `after < id <= upto` into ranges of equally many rides."""
    rows = min(max((upto - after) // (2 * parallelism), LEAST_ROWS), MOST_ROWS)
    ranges = []
    while row := connection.execute(END_OF_RANGE, [after, upto, rows - 1]).fetchone():
        ranges.append(CountedRange(after, row[0], rows))
        after = row[0]
    rest = connection.execute(THE_REST, [after, upto]).fetchone()
    if rest is not None and rest[0]:
        ranges.append(CountedRange(after, upto, rest[0]))
    return ranges


def this_table(connection: "psycopg.Connection") -> str:
    """The full, quoted name of the table `rides` that this connection sees."""
    name: str = one_row(connection.execute(THIS_TABLE))[0]
    return name


def read(spark: "SparkSession", url: str, table: str, ranges: list[CountedRange]) -> "DataFrame":
    """The rides in `ranges`: id, created_at, distance (metres) and day (UTC)."""
    given = conninfo_to_dict(url).get("options") or os.environ.get("PGOPTIONS", "")
    session: dict[str, Any] = {
        "application_name": "reconciler",
        "options": f"{given} {SESSION}",
        "connect_timeout": 10,
        **CONNECTION,
    }
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.dataSource.register(Rides)
    rides = spark.read.format(Rides.name()).options(
        url=make_conninfo(url, **session), table=table, ranges=json.dumps(ranges)
    )
    return in_metres(rides.load())


def in_metres(rides: "DataFrame") -> "DataFrame":
    """Convert the data source's columns to the warehouse's."""
    return rides.selectExpr(
        "id",
        "created_at",
        "CAST(CAST(millimetres AS DECIMAL(12,0)) * 0.001BD AS DECIMAL(12,3)) AS distance",
        f"to_date(least(greatest(created_at, {FIRST}), {LAST})) AS day",
    )


class Rides(DataSource):
    """The table `rides`. Options: `url`, `table`, and `ranges` as JSON."""

    @classmethod
    def name(cls) -> str:
        return "rides"

    def schema(self) -> str:
        return "id BIGINT, created_at TIMESTAMP, millimetres BIGINT"

    def reader(self, schema: "StructType") -> "RidesReader":
        ranges = [CountedRange(*ends) for ends in json.loads(self.options["ranges"])]
        return RidesReader(self.options["url"], self.options["table"], ranges)


class RangePartition(InputPartition):
    """One range, for one task."""

    def __init__(self, ends: CountedRange) -> None:
        super().__init__(ends)


class RidesReader(DataSourceReader):
    """Is sent to the executors, and reads a range there."""

    def __init__(self, url: str, table: str, ranges: list[CountedRange]) -> None:
        self._url = url
        self._table = table
        self._ranges = ranges

    def partitions(self) -> list[InputPartition]:
        return [RangePartition(ends) for ends in self._ranges]

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        from adbc_driver_postgresql import StatementOptions, dbapi

        after, upto, _ = partition.value
        batches = {StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)}
        with dbapi.connect(self._url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**batches)
            cursor.execute(RIDES_IN_RANGE.format(table=self._table, after=after, upto=upto))
            yield from cursor.fetch_record_batch()
