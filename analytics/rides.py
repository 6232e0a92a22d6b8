"""The rides of one run, as Spark reads them: the new ones, and those that the warehouse has."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import reduce

import psycopg
from pyspark.sql import DataFrame, SparkSession

from analytics import extract
from analytics.ledger import Block, Broken, Ledger
from analytics.parquet import File
from analytics.pieces import Piece, pieces
from analytics.session import SPARK_ERRORS, cause
from analytics.steps import Step
from analytics.warehouse import Warehouse, within
from rocket_rides.errors import Unavailable
from rocket_rides.faults import reached

UNREADABLE = (Broken, *SPARK_ERRORS)


@dataclass
class Rides:
    """The rides up to the frozen one. `shown` wraps each Spark stage that can take long."""

    connection: psycopg.Connection
    spark: SparkSession
    warehouse: Warehouse
    base: Ledger  # what the warehouse has; nothing, where it is made anew
    shown: Callable[[str], AbstractContextManager[object]]
    new: list[File] = field(default_factory=list, init=False)  # with the rides that it lacks

    def extract(self, url: str, upto: int, marks: Sequence[int]) -> list[Piece]:
        """Write the rides that the warehouse lacks to files, and add them up from there.

        Raises Unavailable if Spark has not read as many as Postgres has.
        """
        context, after = self.spark.sparkContext, self.base.position
        parallelism = context.defaultParallelism
        ranges = extract.cut_into_ranges(self.connection, after, upto, parallelism)
        if ranges:
            table, folder = extract.this_table(self.connection), self.warehouse.make_room()
            with self.shown("Extracting new rides"):
                self.new = extract.extract(context, url, table, ranges, folder)
        reached(Step.AFTER_EXTRACT)
        with self.shown("Adding up new rides"):
            staged = self.warehouse.read_staged(self.spark, self.new)
            found = pieces(staged, marks) if self.new else []
        read = sum(piece.rides for piece in found)
        expected = sum(range_.rides for range_ in ranges)
        if read != expected:  # before anything is published, or a consumer is called wrong
            raise Unavailable(
                f"Spark read {read} rides where Postgres has {expected}: do executors reach"
                " the same database?"
            )
        return found

    def add_up_again(self, blocks: Sequence[Block], marks: Sequence[int]) -> list[Piece]:
        """Add up the rides of these blocks of the warehouse. Raises Unavailable."""
        if not blocks:
            return []
        with self._reading("Verifying the warehouse"):
            files = self.warehouse.files_of(blocks)
            rides = self.warehouse.read(self.spark, files).where(within(blocks))
            return pieces(rides, [*marks, *(block.upto for block in blocks)])

    def add_up_the_whole_warehouse(self) -> list[Piece]:
        """Add up all that the warehouse has. Raises UNREADABLE."""
        with self.shown("Verifying the warehouse"):
            return pieces(self.warehouse.read(self.spark, self.warehouse.table.files()))

    @contextmanager
    def of_days(self, days: Collection[date], stage: str) -> Iterator[DataFrame | None]:
        """All rides of these days, new and old, for a stage; None if there can't be any.

        Raises Unavailable if the warehouse can't be read, in the block as well.
        """
        new = [file for file in self.new if file.day in days]
        with self._reading(stage):
            files = self.warehouse.table.files() if self.base.blocks else []
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
                raise Unavailable(
                    f"the warehouse can't be read ({cause(error)});"
                    " python -m analytics.reconcile --full rebuilds it"
                ) from None
