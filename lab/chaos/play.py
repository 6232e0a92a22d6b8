"""One run: clients post, the nemesis strikes, and the fleet settles."""

import random
import subprocess
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing

import psycopg
import redis

from lab.chaos import refusals
from lab.chaos.books.nightly import REPAIRED
from lab.chaos.books.tables import TablesJudge, broken, is_settled
from lab.chaos.clients import Crowd
from lab.chaos.evidence import Journal
from lab.chaos.faults.scene import Scene
from lab.chaos.fleet import CONSUMERS, STREAM, Fleet
from lab.chaos.nemesis import Nemesis, plan
from lab.chaos.observer import LogReader, Onlooker
from lab.chaos.postgres_pair import ask
from lab.chaos.runs import Run, Runs, can_run
from lab.chaos.tampering import Tampering
from lab.chaos.trace.recorder import Recorder
from lab.chaos.trace.recording import Recording
from lab.progress import say
from lab.until import until
from unified_log.errors import Unavailable, in_one_line

# Seconds between two looks at whether all is done; more where that takes long. Each look connects.
GLANCE, RARELY = 0.1, 5
TELL_EVERY = 10.0  # seconds
# Seconds for everything to be counted, rolled up and delivered. A clock of Postgres that was ahead
# puts a receipt off by up to ten minutes.
SETTLE_LIMIT = 900.0
REPAIR_LIMIT = 60.0  # seconds
# Seconds; two idle rounds of a consumer: if anything is left that it would count, it does so now.
QUIET = 1.2
# Faults of the nightly job, and drifts, which only it repairs.
NEED_RUNS = {"nightly", "warehouse-full", "wrong-total", "wrong-minute", "lost-outcome"}
# After these faults, entries may be gone before the onlooker has seen them, or a reader may read
# some again.
HIDE_ENTRIES = {
    *("redis-crash", "redis-cut", "redis-flush", "redis-full", "redis-full-long"),
    *("redis-failover", "redis-split", "client-kill", "clock-jump", "disk-full"),
}
# The next ride, which has a higher number than any until now; and whether every total has it.
NEXT_RIDE = "SELECT coalesce(max(id), 0) + 1 FROM log_records"
ALL_HAVE_IT = "SELECT bool_and(position >= %s) FROM checkpoints WHERE kind = 'total'"

AWAY = (psycopg.Error, redis.RedisError, Unavailable)

Condition = Callable[[psycopg.Connection, redis.Redis], bool]


class Play:
    def __init__(self, fleet: Fleet, options: Namespace) -> None:
        self.fleet = fleet
        self.options = options
        self.journal = Journal()
        self.scene = Scene(fleet, self.journal)
        self.journal.restores = self.scene.restores
        self.errors: list[str] = []
        self.last_runs: list[Run] = []  # after all faults
        self.trace = fleet.folder / "trace.gz"
        self.recording = Recording(self.trace)
        recorder = Recorder(lambda: fleet.postgres.url, self.recording)
        reader = LogReader(lambda: fleet.redis.url, STREAM, self.recording.write)
        self.tables = TablesJudge(lambda: fleet.postgres.url)
        self.onlookers: list[Onlooker] = [recorder, reader, self.tables]  # they start in this order
        if can_run() and not NEED_RUNS.isdisjoint(options.faults):
            self.scene.runs = Runs(fleet, self.scene.over)
            self.onlookers.append(self.scene.runs)
        faults = plan(options.seed, options.seconds, options.faults, options.every)
        self.nemesis = Nemesis(self.scene, faults, fleet.folder / "nemesis.log")
        self.crowd = Crowd(options.seed, fleet.api_port, options.rate, self.journal)
        self.recovery = 0.0  # seconds from the last fault until every total had a ride after it
        self.settled_at = float("inf")  # on the monotonic clock

    def run(self) -> None:
        try:
            self._run()
        finally:
            self.scene.over.set()
            if self.scene.runs:
                self.scene.runs.stop()
            self.nemesis.end()

    def _run(self) -> None:
        for onlooker in self.onlookers:
            onlooker.start()
        end = time.monotonic() + self.options.seconds
        self.crowd.start()
        self.nemesis.start()
        while (left := end - time.monotonic()) > 0:
            asked, struck = len(self.journal.asks), len(self.nemesis.struck)
            say(f"{asked:,} rides, {struck:,} faults, {left:.0f} s left")
            time.sleep(min(TELL_EVERY, left))
        self._settle()

    def _settle(self) -> None:
        """End faults and clients; return when nothing is left to do. Raises TimeoutError."""
        say("undoing the faults")
        self.nemesis.end()
        # A restore may have brought refusals back.
        late = "Postgres is away"
        self._until(lambda at, _: refusals.end(at, *CONSUMERS) >= 0, late, SETTLE_LIMIT)
        self.recovery = self._recovers()
        self.crowd.end()
        say("waiting until everything is counted, repaired and delivered")
        try:
            self._comes_to_rest()
            self._play_last_runs()
        except (TimeoutError, subprocess.SubprocessError) as reason:
            self.errors.append(in_one_line(reason))  # what is left to do is among the findings
        self.settled_at = time.monotonic()
        time.sleep(QUIET)
        self.errors += self.fleet.services.end()
        for onlooker in self.onlookers:
            onlooker.end()
        for fault in self.nemesis.struck:
            if fault.kind in HIDE_ENTRIES:
                self.recording.write(fault)
        self.recording.close()
        say("judging")

    def _recovers(self) -> float:
        """Seconds from now until every total has counted a ride that is taken from now on."""
        began, postgres = time.monotonic(), self.fleet.postgres
        ride = until(lambda: ask(postgres, NEXT_RIDE), "Postgres is away", SETTLE_LIMIT, GLANCE)
        late = "nobody counts rides"
        until(lambda: ask(postgres, ALL_HAVE_IT, ride), late, SETTLE_LIMIT, GLANCE)
        return time.monotonic() - began

    def _play_last_runs(self) -> None:
        """Run the job in full; once all is repaired, tamper with what it believes."""
        if runs := self.scene.runs:
            runs.end()
            self.last_runs.append(runs.play(["--full"]))
            late = f"what the last runs found was not repaired after {REPAIR_LIMIT:.0f} s"
            self._until(lambda found, _: not broken(found, (REPAIRED,)), late, REPAIR_LIMIT)
            self._comes_to_rest()
            say("tampering with rides, a state, rights and the ledger")
            self.tables.end()  # the tables are wrong until all is undone
            tampering = Tampering(self.fleet, runs, random.Random(self.options.seed))
            try:
                tampering.run()
            finally:
                self.errors += tampering.found
            self.last_runs.append(runs.all[-1])
            self._comes_to_rest()

    def _comes_to_rest(self) -> None:
        late = f"the fleet had not settled after {SETTLE_LIMIT:.0f} s"

        def rests(at: psycopg.Connection, log: redis.Redis) -> bool:
            """What was refused just before refusals ended may be held out after that."""
            return not refusals.end(at, *CONSUMERS) and is_settled(at, log)

        self._until(rests, late, SETTLE_LIMIT)

    def _until(self, done: Condition, late: str, limit: float) -> None:
        def is_done() -> bool:
            with closing(self.fleet.connect()) as connection, self.fleet.redis_client() as client:
                return done(connection, client)

        until(is_done, late, limit, GLANCE, AWAY, RARELY)
