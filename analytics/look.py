"""A look at blocks: Spark's tasks compare their rides, as rows, in Postgres and in the warehouse.

Reading a block as rows costs Postgres less than any fingerprint of it would, is exact, and names
what differs. A task reads a block's files by pyarrow: no ride passes through Java.
"""

import sys
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from analytics import parquet, rows
from analytics.from_postgres import for_executors, read, send_along
from analytics.minutes import of_files
from analytics.parquet import File
from analytics.pieces import BLOCK, Piece, piece
from analytics.rows import Differences, Differing, Fields
from analytics.store import Store
from analytics.tasks import done

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext

BLOCKS_IN_A_TASK = 16


class Ask(NamedTuple):
    """A block: the rides with `after < id <= upto`, of which the warehouse has those up to `known`.

    `cuts` are where sums are wanted, in order; the last one is `known`.
    """

    after: int
    known: int
    upto: int
    files: tuple[tuple[str, int], ...]  # that may have rides of it, each with its bytes
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


def look(spark: "SparkContext", url: str, table: str, root: str, asks: Sequence[Ask]) -> list[Look]:
    """Compare these blocks with the table at `root`. Raises what Spark raises."""
    task = partial(_look, for_executors(url, sys.modules[__name__]), table, root)
    return [_told(*seen) for seen in _in_tasks(spark, task, asks)]


def digests(spark: "SparkContext", root: str, asks: Sequence[Ask]) -> dict[int, str]:
    """The digest of each block as the table's files have it, by its `after`."""
    return dict(_in_tasks(spark, partial(_digest, root), asks))


def minute_sums(
    spark: "SparkContext", root: str, files: Collection[File]
) -> "list[pa.Table | None]":
    """All rides in these files, by minute; several may have the same minutes."""
    return _in_tasks(spark, partial(_minutes, root), [file[:2] for file in files])


def sums(spark: "SparkContext", root: str, files: Collection[File]) -> list[Piece]:
    """All rides in these files, by block; several may have the same blocks."""
    found = _in_tasks(spark, partial(_pieces, root), [file[:2] for file in files])
    return [piece(*sums) for pieces in found for sums in pieces]


def _in_tasks(spark: "SparkContext", task: Any, items: Sequence[Any]) -> list[Any]:
    send_along(sys.modules[__name__])
    return done(spark, task, items, _slices(spark, items))


def _slices(spark: "SparkContext", items: Sequence[Any]) -> int:
    """Into how many tasks blocks or files are put: few, since each has its price."""
    return min(len(items) or 1, max(spark.defaultParallelism, len(items) // BLOCKS_IN_A_TASK))


def _told(*seen: Any) -> Look:
    """A task's answer has classes of its own."""
    after, known, upto, mine, theirs, whole, mixed, *sides, differ = seen
    of_postgres, of_warehouse = (tuple(piece(*sums) for sums in side) for side in sides)
    count, named, gone, days, key = differ
    rides = tuple(
        Differing(ride, *(Fields(*fields) if fields else None for fields in both))
        for ride, *both in named
    )
    differences = Differences(count, rides, gone, tuple(days), key)
    return Look(
        after, known, upto, mine, theirs, whole, mixed, of_postgres, of_warehouse, differences
    )  # fmt: skip


def _look(url: str, table: str, root: str, asked: Ask) -> tuple[Any, ...]:
    """Compare one block. Runs on an executor."""
    after, known, upto, files, cuts = asked
    in_postgres = read(url, table, after, upto)
    old, new = in_postgres.upto(known), in_postgres.beyond(known)
    in_files = parquet.read(Store(root), files, after, known)
    mine, theirs = old.digest(after, known), in_files.digest(after, known)
    whole = in_postgres.digest(after, upto)
    return (
        after, known, upto, mine, theirs, whole,
        whole if mine == theirs else in_files.then(new).digest(after, upto),
        [*old.sums(after, cuts)], [*in_files.sums(after, cuts)],
        rows.differences(old, in_files),
    )  # fmt: skip


def _digest(root: str, asked: Ask) -> tuple[int, str]:
    """A block in the files. Runs on an executor, as what follows."""
    after, known, _, files, _ = asked
    return after, parquet.read(Store(root), files, after, known).digest(after, known)


def _minutes(root: str, file: tuple[str, int]) -> "pa.Table | None":
    return of_files(Store(root), [file])


def _pieces(root: str, file: tuple[str, int]) -> list[tuple[int, int, int, int]]:
    found = parquet.read(Store(root), [file], 0, rows.MOST)
    return [*found.sums(0, found.ends(BLOCK))]
