"""One run: freeze, extract, compare, prove, emit; then the warehouse is tidied.

* Freeze: in one snapshot, read `last_sent`, and each reader's checkpoint and total.
* Extract: read the rides since the last run. Meanwhile count all records.
* Compare: some of the older rides, as rows, with the warehouse's files.
* Decide: who is right where they differ, and whether each total is (`analytics.votes`).
* Prove: compare all else with the rides and ratings.
* Emit: write a row into `reconciliations`, and one into `resets` for each wrong total, which its
  consumer applies by itself (`consumers/totals/reset.py`); complete the row in `runs`.

The `known` ledger is what the warehouse holds; `base` is what this run builds on: the same, or
nothing in a full run. A block is a range of rides that the ledger has added up. A piece is the sum
of the rides between two cuts; the marks are the cuts at which a total is wanted.

Nothing after the freeze depends on what happens meanwhile, because rides up to the frozen id never
change, and a reset is exact wherever its consumer stands by then. There is one exception: an
operator's repair (`python -m unified_log.repair`) may count records that somebody staged below
`last_sent`. That changes what earlier rides add up to, so a run in which it happens ends without a
result, and the next one reads all rides again.
"""

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime

import psycopg
from pyspark import SparkContext

from analytics import evidence, ownership, runs
from analytics.case import Case
from analytics.emit import emit, set_back
from analytics.freeze import freeze
from analytics.ledger import Broken
from analytics.plain import require_same
from analytics.reread import read_again
from analytics.result import Result
from analytics.rides import Rides
from analytics.runs import Run
from analytics.session import cause
from analytics.steps import RunStep
from analytics.warehouse import UNTIDY, Warehouse
from rocket_rides import telemetry
from unified_log.errors import Unavailable
from unified_log.faults import reached

HAD_RIDES = """
    SELECT rides > 0 FROM reconciliations ORDER BY id DESC LIMIT 1
"""


@dataclass
class Job:
    """What a run needs. `shown` wraps each Spark stage that may take long.

    `run` is its row in `runs`: None for one that only checks. The connection holds the lock.
    """

    connection: psycopg.Connection
    spark: SparkContext
    url: str  # of the same database, for the executors
    warehouse: Warehouse  # made ready, unless this run only checks
    run: runs.Run | None
    chance: random.Random = field(default_factory=random.Random)
    shown: Callable[[str], AbstractContextManager[object]] = lambda _stage: nullcontext()
    reread_days: int = 30

    def run_once(self, *, full: bool = False) -> Result:
        """Check every consumer against the rides, and the warehouse against Postgres.

        Then extends the warehouse and emits the result, unless this run only checks; `full` reads
        everything from the first ride, and rebuilds a warehouse that nothing speaks against. Raises
        Unavailable, psycopg.Error, OSError, or what Spark raises: then nothing was emitted, unless
        the connection was lost during the commit.
        """
        started = time.monotonic()
        now = datetime.now(UTC)
        result = Result(now, repairing=self.run is not None, run=self.run.id if self.run else None)
        last = runs.last_completed(self.connection)
        with telemetry.stage("freeze"):
            frozen = freeze(self.connection)
        result.position = frozen.position
        reached(RunStep.AFTER_FREEZE)
        known = evidence.known(
            self.warehouse, frozen.history, runs.known_ledgers(self.connection),
            full=full, had_rides=self._had_rides(), result=result,
        )  # fmt: skip
        rides = Rides(
            self.connection, self.spark, self.warehouse, self.url, self.shown, self.run is not None
        )
        try:
            case = Case(
                self.connection, self.spark, rides, known, frozen, last, now, self.chance,
                self.reread_days, self.shown, result,
            )  # fmt: skip
            with telemetry.stage("extract and compare"):
                case.read()
            with telemetry.stage("prove"):
                case.prove()
            # A repair would have changed the sums that were taken above.
            ownership.require_no_repair(self.connection, frozen.history)
            if self.run:
                with telemetry.stage("emit"):
                    self._emit(case, self.run, started)
            if result.published and result.agrees:
                with telemetry.stage("tidy"):
                    self._tidy(result)
        except Broken as error:
            raise Unavailable(f"the warehouse can't be used: {error}") from None
        result.seconds = time.monotonic() - started
        return result

    def _emit(self, case: Case, run: Run, started: float) -> None:
        """Publish the new rides, emit the result, and complete the run's row.

        A crash before the table's commit leaves files that no log names. A crash between the
        two commits leaves a warehouse that is right, and no result: the next run finds these rides
        there, and emits a result.
        """
        reached(RunStep.BEFORE_PUBLISH)
        judgement, rides, frozen, result = case.judgement, case.rides, case.frozen, case.result
        after, owner = case.known.base.position, frozen.history.owner(frozen.position)
        publishes = judgement.may_publish
        if publishes:
            written, replaced = read_again(rides, judgement.reread if after else [])
            if not after:
                self.warehouse.table.make_way()
            committed = self.warehouse.note(after, case.ledger, owner)
            run.note_ledger(committed.ledger, case.proven)
        result.seconds = time.monotonic() - started
        with self.connection.transaction():
            if judgement.is_proven:
                emit(self.connection, result, judgement.resets, case.minutes)
            require_same(self.connection, frozen.tables)
            ownership.require_no_repair(self.connection, frozen.history)
            if publishes:
                reached(RunStep.AFTER_LEDGER)
                self.warehouse.publish([*rides.new.files, *written], committed, replaced)
                result.published = True
            sweeps = not judgement.holds_receipts(result.receipts)
            set_back(self.connection, result, case.recounts, sweeps=sweeps)
            case.complete(run, case.ledger if publishes else case.known.ledger)
            # Again: a repair that has begun since made these resets wrong. One that begins later
            # asks for recounts after this has committed (`set_back`), and a recount comes last.
            ownership.require_no_repair(self.connection, frozen.history)
            reached(RunStep.BEFORE_COMMIT)
        reached(RunStep.AFTER_COMMIT)

    def _had_rides(self) -> bool:
        return self.connection.execute(HAD_RIDES).fetchone() == (True,)

    def _tidy(self, result: Result) -> None:
        try:
            self.warehouse.tidy()
        except UNTIDY as error:
            result.notes.append(f"The warehouse was not tidied ({cause(error)}).")
