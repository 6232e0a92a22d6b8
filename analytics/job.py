"""One run: freeze, extract, reduce, verify, prove, publish, emit.

Nothing after the freeze depends on what happens meanwhile, because rides up to the frozen id never
change, and a reset is exact wherever its consumer stands by then.
"""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import Enum
from functools import reduce

import psycopg
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from analytics import ownership, source, verify
from analytics.cells import Cell, by_day, cells, merged, total
from analytics.emit import emit
from analytics.freeze import Frozen, FrozenConsumer, freeze
from analytics.ledger import Broken, Ledger
from analytics.minutes import Minutes, by_hour, by_minute, collected
from analytics.ownership import History
from analytics.proofs import outbox, proved_upto, receipts, rollup
from analytics.result import Compared, Result
from analytics.session import SPARK_ERRORS, cause
from analytics.warehouse import Warehouse, ledger_of, within
from rocket_rides.errors import Unavailable
from rocket_rides.faults import reached

SAMPLE = 8  # blocks of the warehouse that a night checks against Postgres
UNREADABLE = (Broken, *SPARK_ERRORS)
HAD_RIDES = """
    SELECT rides > 0 FROM reconciliations WHERE NOT compared ? 'mended' ORDER BY id DESC LIMIT 1
"""


class Step(Enum):
    """The steps at which a run can be made to crash, in order."""

    AFTER_FREEZE = "after the freeze"
    AFTER_EXTRACT = "after the rides were written and before they were added up"
    BEFORE_PUBLISH = "before the new rides became visible"
    AFTER_PUBLISH = "after the new rides became visible"
    BEFORE_COMMIT = "after the result was emitted and before the commit"
    AFTER_COMMIT = "after the commit"


@dataclass
class Job:
    """What a run needs. `shown` wraps each Spark stage that can take long."""

    connection: psycopg.Connection  # holds the lock
    spark: SparkSession
    url: str  # of the same database, for the executors
    warehouse: Warehouse  # made ready, unless this run only checks
    chance: random.Random = field(default_factory=random.Random)
    shown: Callable[[str], AbstractContextManager[object]] = lambda _stage: nullcontext()
    extracted: DataFrame | None = field(default=None, init=False)  # the rides new to the warehouse

    def run_once(self, *, check: bool = False, full: bool = False) -> Result:
        """Check every consumer against the rides, and the warehouse against Postgres.

        Then extends the warehouse and emits the result, unless `check` is set or the warehouse is
        wrong; `full` reads everything from the first ride and rebuilds the warehouse. Raises
        Unavailable, psycopg.Error, or what Spark raises: then nothing was emitted.
        """
        started = time.monotonic()
        result = Result(datetime.now(UTC), repairing=not check)
        frozen = freeze(self.connection)
        result.last_ride_id = frozen.last_ride_id
        reached(Step.AFTER_FREEZE)
        known = self._known(result, frozen.history, full)

        base = Ledger() if full else known
        # Where a total is wanted; and where the warehouse ends, to tell new rides from old ones.
        marks = {min(c.last_ride_id, frozen.last_ride_id) for c in frozen.consumers}
        marks |= {frozen.last_ride_id, known.last_ride_id}
        new = self._extract(base, frozen.last_ride_id, sorted(marks), check)
        if full:
            self._verify_all(known, new, result)
            summed = new
        else:
            summed = new + self._verify(known, sorted(marks), result)

        result.total = base.upto(frozen.last_ride_id, summed)
        result.new = total(cell.tally for cell in new)
        result.days = merged(base.days, by_day(new))
        result.consumers = [
            _compare(standing, frozen.last_ride_id, base, summed) for standing in frozen.consumers
        ]
        self._prove(base, new, full, result)
        if not check and (full or not result.mismatches):
            self._publish(base, new, frozen)
            self._emit(result, started)
        result.seconds = time.monotonic() - started
        return result

    def _known(self, result: Result, ours: History, full: bool) -> Ledger:
        """What the warehouse holds; an unusable one counts as empty, which `result` notes.

        Raises Unavailable when it is another database's.
        """
        manifests = self.warehouse.manifests()
        if reason := ownership.why_rebuild(manifests, ours):
            return self._forgotten(result, f"The warehouse {reason}")
        try:
            ledger = ledger_of(manifests)
        except Broken as reason:
            return self._forgotten(result, f"The warehouse is broken ({reason})")
        if not ledger.blocks and not full:
            row = self.connection.execute(HAD_RIDES).fetchone()
            if row == (True,):
                return self._forgotten(result, f"The warehouse {self.warehouse.folder} is gone")
        return ledger

    def _forgotten(self, result: Result, reason: str) -> Ledger:
        result.notes.append(f"{reason}: {_rebuilt(result)}.")
        return Ledger()

    def _extract(self, base: Ledger, upto: int, marks: Sequence[int], check: bool) -> list[Cell]:
        """Add up the rides that the warehouse lacks; unless `check`, write them to it first."""
        parallelism = self.spark.sparkContext.defaultParallelism
        ranges = source.cut_into_ranges(self.connection, base.last_ride_id, upto, parallelism)
        if not ranges:
            return []
        table = source.this_table(self.connection)
        rides = source.read(self.spark, self.url, table, ranges)
        if not check:
            with self.shown("Extracting new rides"):
                rides = self.warehouse.write(rides)
        self.extracted = rides
        reached(Step.AFTER_EXTRACT)
        with self.shown("Adding up new rides"):
            new = cells(rides, marks)
        read, expected = sum(cell.rides for cell in new), sum(range_.rides for range_ in ranges)
        if read != expected:  # before anything is published, or a consumer is called wrong
            raise Unavailable(f"Spark read {read} rides where Postgres has {expected}")
        return new

    def _verify(self, known: Ledger, marks: Sequence[int], result: Result) -> list[Cell]:
        """Check against Postgres a sample of the warehouse, and every block that a mark lies in."""
        if not known.blocks:
            return []
        blocks = known.sample(SAMPLE, self.chance)
        blocks += [known.block_of(mark) for mark in marks if 0 < mark <= known.last_ride_id]
        blocks = sorted(set(blocks), key=lambda block: block.upto)
        with self.shown("Verifying the warehouse"):
            try:
                rides = self.warehouse.read(self.spark, blocks).where(within(blocks))
                old = cells(rides, [*marks, *(block.upto for block in blocks)])
            except UNREADABLE as error:
                raise unreadable(error) from None
            result.mismatches = verify.against_postgres(self.connection, blocks, old)
        result.verified = len(blocks)
        return old

    def _verify_all(self, known: Ledger, new: Sequence[Cell], result: Result) -> None:
        """Check the whole warehouse against the rides, which have all been read again."""
        if not known.blocks:
            return
        try:
            with self.shown("Verifying the warehouse"):
                old = cells(self.warehouse.read(self.spark, known.blocks))
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
        upto = 0 if full else proved_upto(self.connection, "receipts")
        result.receipts = receipts.prove(self.connection, upto, self.chance)
        if result.mismatches and not full:
            return  # a warehouse that is wrong proves nothing about minutes

        def minutes_of(days: Sequence[date]) -> Minutes:
            minutes = self._minutes_of(days, base)
            result.hours |= by_hour(minutes)
            return minutes

        days = {cell.day for cell in new} | self._days_to_prove(base, full)
        found = rollup.prove(self.connection, minutes_of, days, result.last_ride_id)
        result.rollup, wrong_rides = found
        result.mismatches += wrong_rides

    def _days_to_prove(self, base: Ledger, full: bool) -> set[date]:
        """The days whose minutes are to be compared, beside those of the new rides."""
        if full:
            return rollup.days_rolled_up(self.connection)
        upto = min(rollup.complete_to(self.connection), base.last_ride_id)
        return rollup.unproved_days(self.connection, proved_upto(self.connection, "rollup"), upto)

    def _minutes_of(self, days: Sequence[date], base: Ledger) -> Minutes:
        """The minutes of these days, with all rides up to the frozen one."""
        blocks = [block for block in base.blocks if block.has_any(days)]
        of_these_days = f.col("day").isin(*days)
        with self.shown("Adding up minutes"):
            try:
                found = [self.warehouse.read(self.spark, blocks)] if blocks else []
                found += [self.extracted] if self.extracted is not None else []
                rides = [each.where(of_these_days) for each in found]
                return collected(by_minute(reduce(DataFrame.union, rides))) if rides else {}
            except UNREADABLE as error:
                raise unreadable(error) from None

    def _publish(self, base: Ledger, new: list[Cell], frozen: Frozen) -> None:
        reached(Step.BEFORE_PUBLISH)
        self.connection.execute("SELECT")  # without the connection we no longer have the lock
        if new:
            manifest = base.next_manifest(self.warehouse.next_run, frozen.last_ride_id, new)
            self.warehouse.publish(ownership.with_owner(manifest, frozen.history))
        elif not base.blocks:
            self.warehouse.empty()
        reached(Step.AFTER_PUBLISH)

    def _emit(self, result: Result, started: float) -> None:
        result.seconds = time.monotonic() - started
        with self.connection.transaction():
            emit(self.connection, result)
            reached(Step.BEFORE_COMMIT)
        reached(Step.AFTER_COMMIT)


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
