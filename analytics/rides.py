"""The rides of one run, as Spark reads them: the new ones, and those that the warehouse has.

Spark adds up what its tasks have written, from the files: by blocks, by minutes. Old rides are
compared with Postgres' in its tasks, as rows.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import reduce

import psycopg
from pyspark.sql import DataFrame, SparkSession

from analytics import extract
from analytics.ledger import Broken
from analytics.look import Ask, Look, digests, look
from analytics.parquet import File
from analytics.pieces import Piece, pieces
from analytics.session import SPARK_ERRORS, cause
from analytics.steps import RunStep
from analytics.warehouse import Warehouse
from unified_log.errors import Unavailable
from unified_log.faults import reached

UNREADABLE = (Broken, *SPARK_ERRORS)
NOT_RIDES = "ValueError: Parquet: "  # as `analytics.look` says of a file


@dataclass
class Rides:
    """The rides up to the frozen one. `shown` wraps each Spark stage that can take long."""

    connection: psycopg.Connection
    spark: SparkSession
    warehouse: Warehouse
    url: str  # of the same database, for the executors
    shown: Callable[[str], AbstractContextManager[object]]
    new: list[File] = field(default_factory=list, init=False)  # with the rides that it lacks
    digests: dict[int, str] = field(default_factory=dict, init=False)  # of the blocks of these

    def extract(self, after: int, upto: int, marks: Sequence[int]) -> list[Piece]:
        """Write the rides with `after < id <= upto` to files, and add them up from there.

        Raises Unavailable if Spark has not read as many as Postgres has.
        """
        context = self.spark.sparkContext
        parallelism = context.defaultParallelism
        ranges = extract.cut_into_ranges(self.connection, after, upto, parallelism)
        if ranges:
            table, folder = extract.this_table(self.connection), self.warehouse.make_room()
            with self.shown("Extracting new rides"):
                self.new, self.digests = extract.extract(context, self.url, table, ranges, folder)
        reached(RunStep.AFTER_EXTRACT)
        with self.shown("Adding up new rides"):
            staged = self.warehouse.read_staged(self.spark, self.new)
            found = pieces(staged, marks) if self.new else []
        read = sum(piece.rides for piece in found)
        expected = sum(range_.rows for range_ in ranges)
        if read != expected:  # before anything is published, or a consumer is called wrong
            raise Unavailable(
                f"Spark read {read} rides where Postgres has {expected}: do executors reach"
                " the same database?"
            )
        return found

    def look(self, blocks: Sequence[Ask], *, with_files: bool = True) -> list[Look]:
        """Compare blocks with Postgres, ride by ride. Raises Unavailable, or what Spark raises.

        Without the files, as if the warehouse had none of these rides.
        """
        if not blocks:
            return []
        table = extract.this_table(self.connection)
        with self._reading("Comparing old rides"):
            asked = self._with_files(blocks) if with_files else blocks
            return look(self.spark.sparkContext, self.url, table, asked)

    def digests_in_files(self, blocks: Sequence[Ask]) -> dict[int, str]:
        """The digest of each block as the warehouse has it, by its beginning.

        Raises Broken if the files can't be read, or what Spark raises.
        """
        with self.shown("Reading the warehouse"):
            try:
                return digests(self.spark.sparkContext, self.url, self._with_files(blocks))
            except SPARK_ERRORS as error:
                if NOT_RIDES in str(error):
                    raise Broken(cause(error)) from None
                raise

    def _with_files(self, blocks: Sequence[Ask]) -> list[Ask]:
        """The same blocks, each with the files that may have rides of it."""
        ordered = sorted(blocks)
        paths: list[list[str]] = [[] for _ in ordered]
        for file in self.warehouse.table.files():
            place = bisect_left(ordered, file.first, key=lambda block: block.known)
            while place < len(ordered) and ordered[place].after < file.last:
                paths[place].append(str(self.warehouse.table.require(file)))
                place += 1
        return [
            block._replace(paths=tuple(found)) for block, found in zip(ordered, paths, strict=True)
        ]

    @contextmanager
    def of_days(
        self, days: Collection[date], stage: str, *, with_old: bool
    ) -> Iterator[DataFrame | None]:
        """All rides of these days, new and old, for a stage; None if there can't be any.

        Raises Unavailable if the warehouse can't be read, in the block as well.
        """
        new = [file for file in self.new if file.day in days]
        with self._reading(stage):
            files = self.warehouse.table.files() if with_old else []
            old = [file for file in files if file.day in days]
            found = [self.warehouse.read(self.spark, old)] if old else []
            found += [self.warehouse.read_staged(self.spark, new)] if new else []
            yield reduce(DataFrame.union, found) if found else None

    @contextmanager
    def _reading(self, stage: str) -> Iterator[None]:
        with self.shown(stage):
            try:
                yield
            except UNREADABLE as error:
                if "SQLSTATE" in str(error):  # it is Postgres that a task could not read
                    raise
                raise Unavailable(
                    f"the warehouse can't be read ({cause(error)});"
                    " python -m analytics.reconcile --full rebuilds it"
                ) from None
