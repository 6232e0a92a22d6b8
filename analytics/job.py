"""One run: freeze, extract, reduce, verify, prove, publish, emit; then the warehouse is tidied.

Nothing after the freeze depends on what happens meanwhile, because rides up to the frozen id never
change, and a reset is exact wherever its consumer stands by then. Only a ride that was stranded
comes later than that: a run during which it is mended (`streamer.mend`) says nothing, and the next
one reads everything again.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import reduce

import psycopg
from pyspark.sql import DataFrame, SparkSession

from analytics import ownership, source, verify
from analytics.cells import Cell, cells, total
from analytics.emit import emit, set_back
from analytics.figures import figures, last_weeks
from analytics.freeze import Frozen, FrozenConsumer, freeze
from analytics.ledger import Block, Broken, Ledger
from analytics.minutes import Minutes, by_minute, collected
from analytics.ownership import History
from analytics.parquet import File
from analytics.proofs import outbox, receipts, rollup
from analytics.result import Compared, Figures, Proved, Result
from analytics.session import SPARK_ERRORS, cause
from analytics.steps import Step
from analytics.tidying import UNTIDY, tidy
from analytics.warehouse import Warehouse, within
from rocket_rides.errors import Unavailable
from rocket_rides.faults import reached

SAMPLE = 8  # blocks of the warehouse that a night checks against Postgres
UNREADABLE = (Broken, *SPARK_ERRORS)
HAD_RIDES = """
    SELECT rides > 0 FROM reconciliations WHERE NOT compared ? 'mended' ORDER BY id DESC LIMIT 1
"""


@dataclass
class Job:
    """What a run needs. `shown` wraps each Spark stage that can take long."""

    connection: psycopg.Connection  # holds the lock
    spark: SparkSession
    url: str  # of the same database, for the executors
    warehouse: Warehouse  # made ready, unless this run only checks
    chance: random.Random = field(default_factory=random.Random)
    shown: Callable[[str], AbstractContextManager[object]] = lambda _stage: nullcontext()
    new: list[File] = field(default_factory=list, init=False)  # with the rides that it lacked

    def run_once(
        self, *, check: bool = False, full: bool = False, describe: bool = False
    ) -> Result:
        """Check every consumer against the rides, and the warehouse against Postgres.

        Then extends the warehouse and emits the result, unless `check` is set or the warehouse is
        wrong; `full` reads everything from the first ride and rebuilds the warehouse. `describe`
        adds the figures of the last weeks. Raises Unavailable, psycopg.Error, or what Spark raises:
        then nothing was emitted.
        """
        started = time.monotonic()
        result = Result(datetime.now(UTC), repairing=not check)
        frozen = freeze(self.connection)
        result.last_ride_id = frozen.last_ride_id
        reached(Step.AFTER_FREEZE)
        known = self._known(result, frozen.history, full)
        base = Ledger() if full else known
        try:
            ledger = self._compare_all(frozen, known, base, full, result)
            if describe:
                result.figures = self._describe(base, result)
            if not check and (full or not result.mismatches):
                self._keep(ledger, base, frozen, result, started)
                self._tidy(result)
        finally:
            self.warehouse.forget_staged()
        result.seconds = time.monotonic() - started
        return result

    def _compare_all(
        self, frozen: Frozen, known: Ledger, base: Ledger, full: bool, result: Result
    ) -> Ledger:
        """Extract, reduce, verify, prove; returns what the warehouse is to hold."""
        # Where a total is wanted; and where the warehouse ends, to tell new rides from old ones.
        stand = {min(c.last_ride_id, frozen.last_ride_id) for c in frozen.consumers}
        marks = sorted(stand | {frozen.last_ride_id, known.last_ride_id})
        verified = [] if full else self._to_verify(known, marks)
        with ThreadPoolExecutor() as beside:  # the tasks that extract use Postgres, but little Java
            old = beside.map(self._read_again, [verified], [marks])  # begins at once
            expected = self._extract(base, frozen.last_ride_id)
            new = self._add_up(expected, marks)
        summed = new + next(old)
        if full:
            self._verify_all(known, new, result)
        else:
            result.mismatches = verify.against_postgres(self.connection, verified, summed)
            result.verified = len(verified)

        ledger = base.extended(frozen.last_ride_id, new)
        result.total = ledger.total
        result.new = total(cell.tally for cell in new)
        result.days = ledger.days
        result.consumers = [
            _compare(standing, frozen.last_ride_id, base, summed) for standing in frozen.consumers
        ]
        self._prove(base, new, full, result)
        ownership.require_unmended(self.connection, frozen.history)  # or some of this is untrue
        return ledger

    def _known(self, result: Result, ours: History, full: bool) -> Ledger:
        """What the warehouse holds; an unusable one counts as empty, which `result` notes.

        Raises Unavailable when it is another database's.
        """
        if reason := ownership.why_rebuild(self.warehouse.owners(), ours):
            return self._forgotten(result, f"The warehouse {reason}")
        try:
            ledger = self.warehouse.ledger(self.spark)
        except UNREADABLE as error:
            return self._forgotten(result, f"The warehouse is broken ({cause(error)})")
        if not ledger.blocks and not full:
            row = self.connection.execute(HAD_RIDES).fetchone()
            if row == (True,):
                return self._forgotten(result, f"The warehouse {self.warehouse.folder} is gone")
        return ledger

    def _forgotten(self, result: Result, reason: str) -> Ledger:
        result.notes.append(f"{reason}: {_rebuilt(result)}.")
        return Ledger()

    def _extract(self, base: Ledger, upto: int) -> int:
        """Write the rides that the warehouse lacks to files; returns how many they are."""
        parallelism = self.spark.sparkContext.defaultParallelism
        ranges = source.cut_into_ranges(self.connection, base.last_ride_id, upto, parallelism)
        if ranges:
            table, folder = source.this_table(self.connection), self.warehouse.make_room()
            with self.shown("Extracting new rides"):
                context = self.spark.sparkContext
                self.new = source.extract(context, self.url, table, ranges, folder)
        reached(Step.AFTER_EXTRACT)
        return sum(range_.rides for range_ in ranges)

    def _add_up(self, expected: int, marks: Sequence[int]) -> list[Cell]:
        """Add up the rides that were extracted. Raises Unavailable if they are not as expected."""
        with self.shown("Adding up new rides"):
            rides = self.warehouse.read_staged(self.spark, self.new)
            new = cells(rides, marks) if self.new else []
        read = sum(cell.rides for cell in new)
        if read != expected:  # before anything is published, or a consumer is called wrong
            raise Unavailable(f"Spark read {read} rides where Postgres has {expected}")
        return new

    def _to_verify(self, known: Ledger, marks: Sequence[int]) -> list[Block]:
        """A sample of the warehouse's blocks, and every one that a mark lies in."""
        if not known.blocks:
            return []
        blocks = known.sample(SAMPLE, self.chance)
        blocks += [known.block_of(mark) for mark in marks if 0 < mark <= known.last_ride_id]
        return sorted(set(blocks), key=lambda block: block.upto)

    def _read_again(self, blocks: Sequence[Block], marks: Sequence[int]) -> list[Cell]:
        """Add up the rides of these blocks of the warehouse. Runs beside the extract."""
        if not blocks:
            return []
        with self.shown("Verifying the warehouse"):
            try:
                files = self.warehouse.files_of(blocks)
                rides = self.warehouse.read(self.spark, files).where(within(blocks))
                return cells(rides, [*marks, *(block.upto for block in blocks)])
            except UNREADABLE as error:
                raise unreadable(error) from None

    def _verify_all(self, known: Ledger, new: Sequence[Cell], result: Result) -> None:
        """Check the whole warehouse against the rides, which have all been read again."""
        if not known.blocks:
            return
        try:
            with self.shown("Verifying the warehouse"):
                old = cells(self.warehouse.read(self.spark, self.warehouse.table.files()))
        except UNREADABLE as error:
            result.notes.append(
                f"The warehouse can't be read ({cause(error)}): {_rebuilt(result)}."
            )
            return
        result.mismatches = verify.against_all(old, new, known.last_ride_id)
        result.verified = len(known.blocks)

    def _prove(self, base: Ledger, new: Sequence[Cell], full: bool, result: Result) -> None:
        """Compare the outbox, the receipts and the rollup with the rides."""
        result.outbox = outbox.prove(self.connection)
        known = receipts.proved(self.connection) if base.blocks else Proved()
        result.receipts = receipts.prove(self.connection, known, self.chance)
        if result.mismatches and not full:
            return  # a warehouse that is wrong proves nothing about minutes

        def minutes_of(days: Sequence[date]) -> Minutes:
            with self._rides_of(days, base, "Adding up minutes") as rides:
                return collected(by_minute(rides)) if rides is not None else {}

        complete = rollup.complete_to(self.connection)
        days = {cell.day for cell in new} | self._days_to_prove(base, complete, full)
        found = rollup.prove(self.connection, minutes_of, days, result.last_ride_id, complete)
        result.rollup, wrong_rides = found
        result.mismatches += wrong_rides

    def _days_to_prove(self, base: Ledger, complete: int, full: bool) -> set[date]:
        """The days whose minutes are to be compared, beside those of the new rides."""
        if full:
            return rollup.days_rolled_up(self.connection)
        upto = min(complete, base.last_ride_id)
        return rollup.unproved_days(self.connection, rollup.proved_upto(self.connection), upto)

    def _describe(self, base: Ledger, result: Result) -> Figures:
        days = last_weeks([day for day, tally in result.days.items() if tally.rides])
        with self._rides_of(days, base, "Describing the last weeks") as rides:
            return figures(rides) if rides is not None else Figures()

    @contextmanager
    def _rides_of(
        self, days: Sequence[date], base: Ledger, stage: str
    ) -> Iterator[DataFrame | None]:
        """All rides of these days up to the frozen one, for a stage; None if there can't be any."""
        new = [file for file in self.new if file.day in days]
        with self.shown(stage):
            try:
                files = self.warehouse.table.files() if base.blocks else []
                old = [file for file in files if file.day in days]
                found = [self.warehouse.read(self.spark, old)] if old else []
                found += [self.warehouse.read_staged(self.spark, new)] if new else []
                yield reduce(DataFrame.union, found) if found else None
            except UNREADABLE as error:
                raise unreadable(error) from None

    def _keep(
        self, ledger: Ledger, base: Ledger, frozen: Frozen, result: Result, started: float
    ) -> None:
        """Publish the new rides, and emit the result, which the table's log keeps, too."""
        reached(Step.BEFORE_PUBLISH)
        result.seconds = time.monotonic() - started
        with self.connection.transaction():
            emit(self.connection, result)  # fails without the connection, which holds the lock
            # Whoever mends after this asks for resets that come after these, and so undo them.
            ownership.require_unmended(self.connection, frozen.history)
            files = self.warehouse.place(self.new, rebuilding=not base.last_ride_id)
            reached(Step.AFTER_PLACING)
            owner = frozen.history.owner(ledger.last_ride_id)
            self.warehouse.publish(files, base.last_ride_id, ledger, owner, result)
            set_back(self.connection, result)
            reached(Step.BEFORE_COMMIT)
        reached(Step.AFTER_COMMIT)

    def _tidy(self, result: Result) -> None:
        try:
            tidy(self.warehouse)
        except UNTIDY as error:
            result.notes.append(f"The warehouse was not tidied ({cause(error)}).")


def _compare(
    standing: FrozenConsumer, settled: int, base: Ledger, summed: Sequence[Cell]
) -> Compared:
    name, last_ride_id, claimed = standing
    exact = base.upto(min(last_ride_id, settled), summed).distance
    return Compared(name, last_ride_id, claimed, exact, stray=last_ride_id > settled)


def unreadable(error: Exception) -> Unavailable:
    return Unavailable(
        f"the warehouse can't be read ({cause(error)});"
        " python -m analytics.reconcile --full rebuilds it"
    )


def _rebuilt(result: Result) -> str:
    be = "is" if result.repairing else "would be"
    return f"it {be} rebuilt from the first ride"
