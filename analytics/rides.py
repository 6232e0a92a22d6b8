"""The rides of one run, as Spark reads them: the new ones, and those that the warehouse has.

Its tasks add up new rides by blocks and by minutes as they read them, and old ones from the files.
Old rides are compared with Postgres', as rows.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date

import psycopg
from pyspark import SparkContext

from analytics.extract import Extracted, cut_into_ranges, extract
from analytics.from_postgres import this_table
from analytics.ledger import Broken
from analytics.look import Ask, Look, digests, look, minute_sums
from analytics.minutes import Minutes, days_of, of_days
from analytics.parquet import NO_RIDES
from analytics.pieces import Piece
from analytics.session import SPARK_ERRORS, cause
from analytics.steps import RunStep
from analytics.warehouse import Warehouse
from rocket_rides.words import command
from unified_log.errors import Unavailable
from unified_log.faults import reached

UNREADABLE = (Broken, *SPARK_ERRORS)
NOT_RIDES = f"ValueError: {NO_RIDES}"  # as a task says of a file


@dataclass
class Rides:
    """The rides up to the frozen one. `shown` wraps each Spark stage that can take long."""

    connection: psycopg.Connection
    spark: SparkContext
    warehouse: Warehouse
    url: str  # of the same database, for the executors
    shown: Callable[[str], AbstractContextManager[object]]
    writes: bool  # a run that only checks does not
    new: Extracted = field(default=Extracted([], [], {}, None), init=False)  # what it lacks

    def extract(self, after: int, upto: int, marks: Sequence[int]) -> list[Piece]:
        """Write the rides with `after < id <= upto` to files, and add them up between cuts.

        Raises Unavailable if Spark has not read as many as Postgres has.
        """
        context = self.spark
        ranges = cut_into_ranges(self.connection, after, upto, context.defaultParallelism)
        table, root = this_table(self.connection), self.warehouse.table.store.root
        with self.shown("Extracting new rides"):
            self.new = extract(
                context, self.url, table, ranges, marks, root if self.writes else None
            )
        reached(RunStep.AFTER_EXTRACT)
        read = sum(piece.rides for piece in self.new.pieces)
        expected = sum(range_.rows for range_ in ranges)
        if read != expected:  # before anything is published, or a consumer is called wrong
            raise Unavailable(
                f"Spark read {read} rides where Postgres has {expected}: do executors reach"
                " the same database?"
            )
        return sorted(self.new.pieces)

    def look(self, blocks: Sequence[Ask], *, with_files: bool = True) -> list[Look]:
        """Compare blocks with Postgres, ride by ride. Raises Unavailable, or what Spark raises.

        Without the files, as if the warehouse had none of these rides.
        """
        if not blocks:
            return []
        table, root = this_table(self.connection), self.warehouse.table.store.root
        with self._reading("Comparing old rides"):
            asked = self._with_files(blocks) if with_files else blocks
            return look(self.spark, self.url, table, root, asked)

    def digests_in_files(self, blocks: Sequence[Ask]) -> dict[int, str]:
        """The digest of each block as the warehouse has it, by its beginning.

        Raises Broken if the files can't be read, or what Spark raises.
        """
        with self.shown("Reading the warehouse"):
            try:
                root = self.warehouse.table.store.root
                return digests(self.spark, root, self._with_files(blocks))
            except SPARK_ERRORS as error:
                if NOT_RIDES in str(error):
                    raise Broken(what(error)) from None
                raise

    def _with_files(self, blocks: Sequence[Ask]) -> list[Ask]:
        """The same blocks, each with the files that may have rides of it."""
        ordered = sorted(blocks)
        files: list[list[tuple[str, int]]] = [[] for _ in ordered]
        for file in self.warehouse.table.files():
            place = bisect_left(ordered, file.first, key=lambda block: block.known)
            while place < len(ordered) and ordered[place].after < file.last:
                files[place].append((file.path, file.size))
                place += 1
        return [
            block._replace(files=tuple(found)) for block, found in zip(ordered, files, strict=True)
        ]

    def minutes_of(self, days: Collection[date], *, with_old: bool) -> Minutes:
        """All rides of these days, new and old, by minute.

        Raises Unavailable if the warehouse can't be read.
        """
        with self._reading("Adding up minutes"):
            files = self.warehouse.table.files() if with_old else []
            of_these = [file for file in files if file.day in days]
            root = self.warehouse.table.store.root
            old = minute_sums(self.spark, root, of_these)
        return of_days([*old, self.new.minutes], days)

    def new_days(self) -> set[date]:
        """The days on which the new rides were taken, as far as these have minutes."""
        return days_of(self.new.minutes)

    @contextmanager
    def _reading(self, stage: str) -> Iterator[None]:
        with self.shown(stage):
            try:
                yield
            except UNREADABLE as error:
                if not isinstance(error, Broken) and NOT_RIDES not in str(error):
                    raise  # a task could not reach Postgres, or the store
                raise Unavailable(
                    f"the warehouse can't be read ({what(error)});"
                    f" {command('analytics.reconcile')} --full rebuilds it"
                ) from None


def what(error: Exception) -> str:
    """What is wrong with a file, or what Spark raised."""
    return cause(error).removeprefix(NOT_RIDES)
