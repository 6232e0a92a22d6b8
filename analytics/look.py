"""A look at blocks: Spark's tasks compare their rides, as rows, in Postgres and in the warehouse.

Reading a block as rows costs Postgres less than any fingerprint of it would, is exact, and names
what differs. A task reads a block's files by pyarrow: no ride passes through Java.
"""

import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from analytics import extract, parquet, rows
from analytics.pieces import BLOCK, Piece
from analytics.rows import Differences, Differing, Fields, Rows

if TYPE_CHECKING:
    from pyspark import SparkContext

BLOCKS_IN_A_TASK = 16


class Ask(NamedTuple):
    """A block: the rides with `after < id <= upto`, of which the warehouse has those up to `known`.

    `cuts` are where sums are wanted, in order; the last one is `known`.
    """

    after: int
    known: int
    upto: int
    paths: tuple[str, ...]  # of the files that may have rides of it
    cuts: tuple[int, ...]


class Look(NamedTuple):
    """What both copies of a block are, up to `known`."""

    after: int
    known: int
    upto: int
    postgres: str  # the digest
    warehouse: str
    # The digest up to `upto`: of Postgres' block, and of the warehouse's with Postgres' rides past
    # `known`.
    postgres_whole: str
    warehouse_whole: str
    of_postgres: tuple[Piece, ...]
    of_warehouse: tuple[Piece, ...]
    differ: Differences

    @property
    def number(self) -> int:
        return (self.upto - 1) // BLOCK


def look(spark: "SparkContext", url: str, table: str, asks: Sequence[Ask]) -> list[Look]:
    """Compare these blocks. Raises what Spark raises."""
    if not asks:
        return []
    task = partial(_look, extract.for_executors(url, parquet, rows, sys.modules[__name__]), table)
    return [
        _told(*seen) for seen in spark.parallelize(asks, _slices(spark, asks)).map(task).collect()
    ]


def digests(spark: "SparkContext", url: str, asks: Sequence[Ask]) -> dict[int, str]:
    """The digest of each block as the warehouse's files have it, by its `after`."""
    if not asks:
        return {}
    extract.for_executors(url, parquet, rows, sys.modules[__name__])
    return dict(spark.parallelize(asks, _slices(spark, asks)).map(_digest).collect())


def _slices(spark: "SparkContext", asks: Sequence[Ask]) -> int:
    """Into how many tasks blocks are put: few, since each costs some 50 ms."""
    return min(len(asks), max(spark.defaultParallelism, len(asks) // BLOCKS_IN_A_TASK))


def _told(*seen: Any) -> Look:
    """A task's answer has classes of its own."""
    after, known, upto, mine, theirs, whole, mixed, *sides, differ = seen
    of_postgres, of_warehouse = (tuple(_piece(*sums) for sums in side) for side in sides)
    count, named, gone, days, key = differ
    rides = tuple(
        Differing(ride, *(Fields(*fields) if fields else None for fields in both))
        for ride, *both in named
    )
    differences = Differences(count, rides, gone, tuple(days), key)
    return Look(
        after, known, upto, mine, theirs, whole, mixed, of_postgres, of_warehouse, differences
    )  # fmt: skip


def _piece(first: int, last: int, rides: int, millimetres: int) -> Piece:
    return Piece(first, last, rides, Decimal(millimetres).scaleb(-3))


def _look(url: str, table: str, asked: Ask) -> tuple[Any, ...]:
    """Compare one block. Runs on an executor."""
    after, known, upto, paths, cuts = asked
    in_postgres = from_postgres(url, table, after, upto)
    old, new = in_postgres.upto(known), in_postgres.beyond(known)
    in_files = from_files(paths, after, known)
    mine, theirs = old.digest(after, known), in_files.digest(after, known)
    whole = in_postgres.digest(after, upto)
    return (
        after, known, upto, mine, theirs, whole,
        whole if mine == theirs else in_files.then(new).digest(after, upto),
        [*old.sums(after, cuts)], [*in_files.sums(after, cuts)],
        rows.differences(old, in_files),
    )  # fmt: skip


def _digest(asked: Ask) -> tuple[int, str]:
    """A block in the files. Runs on an executor."""
    return asked[0], from_files(asked[3], asked[0], asked[1]).digest(asked[0], asked[1])


def from_postgres(url: str, table: str, after: int, upto: int) -> Rows:
    """The rides with `after < id <= upto` in Postgres, in the order of their ids."""
    statement = extract.RIDES_IN_RANGE.format(table=table, after=after, upto=upto)
    read = rows.EMPTY
    with extract.reading(url, statement) as batches:
        for batch in batches:
            read = read.then(extract.as_rows(batch))
    return read


def from_files(paths: Sequence[str], after: int, upto: int) -> Rows:
    """The rides with `after < id <= upto` in these files, in the order of their ids.

    Raises ValueError if a file is not one of rides.
    """
    import pyarrow as pa
    from pyarrow import dataset

    if not paths:
        return rows.EMPTY
    number = dataset.field("id")
    names = ["id", "created_at", "distance"]
    try:
        files = dataset.dataset(list(paths), schema=parquet.schema(), format="parquet")
        found = files.to_table(names, filter=(number > after) & (number <= upto))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"Parquet: {error}") from None
    read = rows.EMPTY
    for batch in _batches(found.sort_by("id")):
        ids, created_at, metres = batch
        micros = created_at.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        read = read.then(rows.of_columns(ids, micros, _millimetres(metres)))
    return read


def _batches(table: Any) -> Iterator[list[Any]]:
    for batch in table.combine_chunks().to_batches():
        yield batch.columns


def _millimetres(metres: Any) -> Any:
    """The same integers, without the point."""
    import pyarrow as pa

    whole = pa.Array.from_buffers(
        pa.decimal128(19, 0), len(metres), metres.buffers(), metres.null_count, metres.offset
    )
    return whole.cast(pa.int64())
