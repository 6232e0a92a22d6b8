"""One run: freeze, extract, prove, emit; then the warehouse is tidied.

* Freeze: in one snapshot, read `last_sent`, and each consumer's checkpoint and total.
* Extract: read the rides since the last run.
* Prove: compare each total with the exact sum up to its own position, and all else with the
  rides and ratings.
* Emit: write a row into `reconciliations`, and one into `resets` for each wrong total, which its
  consumer applies by itself (`consumers/totals/reset.py`).

The `known` ledger is what the warehouse holds; `base` is what this run builds on: the same, or
nothing in a full run. A block is a range of rides that the ledger has added up. A piece is the sum
of the rides between two cuts; the marks are the cuts at which a total is wanted.

Nothing after the freeze depends on what happens meanwhile, because rides up to the frozen id never
change, and a reset is exact wherever its consumer stands by then. There is one exception: an
operator's repair (`python -m streamer.repair`) may count records that somebody staged below
`last_sent`. That changes what earlier rides add up to, so a run in which it happens ends without a
result, and the next one reads all rides again.
"""

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import psycopg
from pyspark.sql import SparkSession

from analytics import ownership
from analytics.emit import emit, set_back
from analytics.freeze import Frozen, FrozenConsumer, freeze
from analytics.ledger import Block, Ledger
from analytics.minutes import Minutes, by_minute, collected
from analytics.ownership import History
from analytics.pieces import Piece, total
from analytics.proofs import outbox, ratings, receipts, rollup
from analytics.proofs import warehouse as verify
from analytics.result import Compared, Proved, Result
from analytics.rides import UNREADABLE, Rides
from analytics.session import cause
from analytics.steps import Step
from analytics.warehouse import UNTIDY, Warehouse
from rocket_rides import telemetry
from rocket_rides.faults import reached

HAD_RIDES = """
    SELECT rides > 0 FROM reconciliations ORDER BY id DESC LIMIT 1
"""


@dataclass
class Job:
    """What a run needs. `shown` wraps each Spark stage that may take long."""

    connection: psycopg.Connection  # holds the lock
    spark: SparkSession
    url: str  # of the same database, for the executors
    warehouse: Warehouse  # made ready, unless this run only checks
    chance: random.Random = field(default_factory=random.Random)
    shown: Callable[[str], AbstractContextManager[object]] = lambda _stage: nullcontext()

    def run_once(self, *, check: bool = False, full: bool = False) -> Result:
        """Check every consumer against the rides, and the warehouse against Postgres.

        Then extends the warehouse and emits the result, unless `check` is set or the warehouse is
        wrong; `full` reads everything from the first ride and rebuilds the warehouse. Raises
        Unavailable, psycopg.Error, OSError, or what Spark raises: then nothing was emitted, unless
        the connection was lost during the commit.
        """
        started = time.monotonic()
        result = Result(datetime.now(UTC), repairing=not check)
        with telemetry.stage("freeze"):
            frozen = freeze(self.connection)
        result.position = frozen.position
        reached(Step.AFTER_FREEZE)
        known = self._known(frozen.history, full, result)
        base = Ledger() if full else known
        rides = Rides(self.connection, self.spark, self.warehouse, base, self.shown)
        try:
            with telemetry.stage("extract"):
                new, sample, old = self._extract(rides, frozen, known, full)
            with telemetry.stage("verify the warehouse"):
                if full:
                    self._verify_all(rides, known, new, result)
                else:
                    summed = [*new, *old]
                    result.mismatches = verify.against_postgres(self.connection, sample, summed)
                    result.verified = len(sample)
            ledger = base.extended(frozen.position, new)
            result.total = ledger.total
            result.last_ride_id = ledger.blocks[-1].last if ledger.blocks else 0
            result.new = total(piece.tally for piece in new)
            result.consumers = [
                _compare(standing, frozen.position, base, [*new, *old])
                for standing in frozen.consumers
            ]
            with telemetry.stage("prove"):
                self._prove_others(rides, full, result)
            # A repair would have changed the sums that were taken above.
            ownership.require_no_repair(self.connection, frozen.history)
            if not check and (full or not result.mismatches):
                with telemetry.stage("emit"):
                    self._emit(rides, ledger, frozen, result, started)
                with telemetry.stage("tidy"):
                    self._tidy(result)
        finally:
            self.warehouse.forget_staged()
        result.seconds = time.monotonic() - started
        return result

    def _known(self, ours: History, full: bool, result: Result) -> Ledger:
        """What the warehouse holds. One that can't be used counts as empty; `result` notes that.

        Raises Unavailable when it is another database's.
        """
        reason = ownership.why_rebuild(self.warehouse.owners(), ours)
        if not reason:
            try:
                ledger = self.warehouse.ledger()
            except UNREADABLE as error:
                reason = f"is broken ({cause(error)})"
            else:
                if ledger.blocks or full or not self._had_rides():
                    return ledger
                reason = f"{self.warehouse.folder} is gone"
        result.notes.append(f"The warehouse {reason}: {_rebuilt(result)}.")
        return Ledger()

    def _had_rides(self) -> bool:
        return self.connection.execute(HAD_RIDES).fetchone() == (True,)

    def _extract(
        self, rides: Rides, frozen: Frozen, known: Ledger, full: bool
    ) -> tuple[list[Piece], list[Block], list[Piece]]:
        """Extract the new rides; unless `full`, also read a sample of the warehouse again.

        Returns the pieces of the new rides, the blocks of the sample, and their pieces.
        """
        # Where a total is wanted, and where the warehouse ends: to tell new rides from old ones.
        stand = {min(c.position, frozen.position) for c in frozen.consumers}
        marks = sorted(stand | {frozen.position, known.position})
        sample = [] if full else verify.chosen(known, marks, self.chance)
        # In a thread meanwhile: extracting keeps Postgres busy, but hardly Java. By `map`, because
        # after an error a Future in this frame would keep the warehouse alive, and so its lock.
        with ThreadPoolExecutor() as pool:
            again = pool.map(rides.add_up_again, [sample], [marks])
            new = rides.extract(self.url, frozen.position, marks)
            [old] = again
        return new, sample, old

    def _verify_all(self, rides: Rides, known: Ledger, new: list[Piece], result: Result) -> None:
        """Check the whole warehouse against the rides, which have all been read again."""
        if not known.blocks:
            return
        try:
            old = rides.add_up_the_whole_warehouse()
        except UNREADABLE as error:
            note = f"The warehouse can't be read ({cause(error)}): {_rebuilt(result)}."
            result.notes.append(note)
            return
        result.mismatches = verify.against_all(old, new, known.position)
        result.verified = len(known.blocks)

    def _prove_others(self, rides: Rides, full: bool, result: Result) -> None:
        """Compare the rollup, the receipts, the outbox and the ratings with what they come from."""
        result.outbox = outbox.prove(self.connection)
        known = receipts.proved(self.connection) if rides.base.blocks else Proved()
        result.receipts = receipts.prove(self.connection, known, self.chance)
        spark = self.spark.sparkContext
        result.ratings = ratings.prove(self.connection, spark, self.url, self.shown)
        if result.mismatches and not full:
            return  # a warehouse that is wrong proves nothing about minutes

        def minutes_of(days: Sequence[date]) -> Minutes:
            with rides.of_days(days, "Adding up minutes") as found:
                return collected(by_minute(found)) if found is not None else {}

        complete = rollup.complete_to(self.connection)
        if full:
            days = rollup.days_rolled_up(self.connection)
        else:
            upto = min(complete, rides.base.position)
            days = rollup.unproved_days(self.connection, rollup.proved_upto(self.connection), upto)
        days |= {file.day for file in rides.new}
        found = rollup.prove(self.connection, minutes_of, days, result.position, complete)
        result.rollup, wrong_rides = found
        result.mismatches += wrong_rides

    def _emit(
        self, rides: Rides, ledger: Ledger, frozen: Frozen, result: Result, started: float
    ) -> None:
        """Publish the new rides, and emit the result.

        A crash before the table's commit leaves files that no table refers to. A crash between the
        two commits leaves a warehouse that is right, and no result: the next run finds these rides
        there, and emits a result.
        """
        reached(Step.BEFORE_PUBLISH)
        result.seconds = time.monotonic() - started
        after = rides.base.position
        with self.connection.transaction():
            emit(self.connection, result)  # fails without the connection, which holds the lock
            ownership.require_no_repair(self.connection, frozen.history)
            files = self.warehouse.place(rides.new, rebuilding=not after)
            reached(Step.AFTER_PLACING)
            owner = frozen.history.owner(ledger.position)
            self.warehouse.publish(files, after, ledger, owner)
            set_back(self.connection, result)
            # Again: a repair that has begun since made these resets wrong. One that begins later
            # asks for recounts after this has committed (`set_back`), and a recount comes last.
            ownership.require_no_repair(self.connection, frozen.history)
            reached(Step.BEFORE_COMMIT)
        reached(Step.AFTER_COMMIT)

    def _tidy(self, result: Result) -> None:
        try:
            self.warehouse.tidy()
        except UNTIDY as error:
            result.notes.append(f"The warehouse was not tidied ({cause(error)}).")


def _compare(
    standing: FrozenConsumer, frozen_id: int, base: Ledger, summed: Sequence[Piece]
) -> Compared:
    """The consumer's total beside the exact one at the same position.

    `emit` asks for a reset where they differ. A consumer that stands past every frozen record is
    stray.
    """
    name, position, claimed = standing
    exact = base.upto(min(position, frozen_id), summed).distance
    return Compared(name, position, claimed, exact, stray=position > frozen_id)


def _rebuilt(result: Result) -> str:
    be = "is" if result.repairing else "would be"
    return f"it {be} rebuilt from the first ride"
