"""One run: clients post, the nemesis strikes, and the fleet settles."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import redis

from lab.chaos.books.statements import REPAIRED
from lab.chaos.books.tables import TablesJudge, broken
from lab.chaos.clients import Crowd
from lab.chaos.drifts import prepare
from lab.chaos.faults.scene import Scene
from lab.chaos.fleet import STREAM, Fleet
from lab.chaos.journal import Journal
from lab.chaos.nemesis import Nemesis, plan
from lab.chaos.nights import Night, Nights, can_run
from lab.chaos.observer import LogReader, Onlooker
from lab.chaos.options import Options
from lab.chaos.postgres_pair import ask
from lab.chaos.settling import is_counted, is_delivered
from lab.chaos.trace.recorder import Recorder
from lab.chaos.trace.recording import Loss, Recording
from lab.until import until
from rocket_rides.errors import Unavailable

LOOK = 0.1  # seconds
GLANCE = 0.5  # seconds between two looks at how far a run is
# Seconds for everything to be counted, rolled up and delivered, with the last nights in between. A
# clock of Postgres that was ahead puts a receipt off by up to ten minutes.
SETTLE_LIMIT = 900.0
REPAIR_LIMIT = 60.0  # seconds for what the last nights have found to be repaired
# Seconds; two idle rounds of a consumer: if anything is left that it would count, it does so now.
QUIET = 1.2
# Faults of the nightly job, and drifts, which only it repairs.
NEED_NIGHTS = {"nightly", "warehouse-full", "wrong-total", "wrong-minute", "lost-outcome"}
# After these faults, entries may be gone before the onlooker has seen them, or a reader may read
# some again.
HIDE_ENTRIES = {
    *("redis-crash", "redis-cut", "redis-flush", "redis-full", "redis-full-long"),
    *("redis-failover", "redis-split", "client-kill", "clock-jump", "disk-full"),
}
# The next ride, which has a higher number than any until now; and whether every total has it.
NEXT_RIDE = "SELECT coalesce(max(id), 0) + 1 FROM rides"
ALL_HAVE_IT = "SELECT bool_and(last_ride_id >= %s) FROM checkpoints WHERE kind = 'total'"

Condition = Callable[[psycopg.Connection, redis.Redis], bool]


class Play:
    """One run, on a fleet that has been started."""

    def __init__(self, fleet: Fleet, options: Options) -> None:
        self.fleet = fleet
        self.options = options
        self.journal = Journal()
        self.scene = Scene(fleet, self.journal)
        self.errors: list[str] = []
        self.nights = self._nights()
        self.last_nights: list[Night] = []  # after all faults
        self.trace = fleet.folder / "trace.gz"
        self.recording = Recording(self.trace)
        self.tables = TablesJudge(lambda: fleet.postgres.url)
        faults = plan(options.seed, options.seconds, options.faults, options.every)
        self.nemesis = Nemesis(self.scene, faults, fleet.folder / "nemesis.log")
        self.onlookers = self._onlookers()
        self.crowd = Crowd(options.seed, fleet.api_port, options.rate, self.journal)
        self.recovery = 0.0  # seconds from the last fault until every total had a ride after it
        self.settled_at = float("inf")  # on the monotonic clock

    def _nights(self) -> Nights | None:
        """The nightly job, if a fault needs it and it can run."""
        with closing(self.fleet.connect()) as connection:
            prepare(connection)
        if NEED_NIGHTS.isdisjoint(self.options.faults) or not can_run():
            return None
        self.scene.nights = Nights(self.fleet, self.scene.over)
        return self.scene.nights

    def _onlookers(self) -> list[Onlooker]:
        """All of them, in the order in which they start."""
        fleet = self.fleet
        recorder = Recorder(lambda: fleet.postgres.url, self.recording)
        reader = LogReader(lambda: fleet.redis.url, STREAM, self.recording.write)
        nights = [self.nights] if self.nights else []
        return [recorder, reader, self.tables, *nights]

    def run(self, bar: Any) -> None:
        """Play the run to its end; `bar` shows the seconds. Faults are undone, also on errors."""
        try:
            self._run(bar)
        finally:
            self.scene.over.set()
            if self.nights:
                self.nights.stop()
            self.nemesis.end()

    def _run(self, bar: Any) -> None:
        for onlooker in self.onlookers:
            onlooker.start()
        started = time.monotonic()
        self.crowd.start()
        self.nemesis.start()
        while (elapsed := time.monotonic() - started) < self.options.seconds:
            bar.update(round(elapsed - bar.n, 1))
            answered, struck = self.journal.answered, len(self.nemesis.struck)
            bar.set_postfix_str(f"{answered:,} rides, {struck:,} faults", refresh=False)
            time.sleep(GLANCE)
        bar.set_postfix_str("settling")
        self._settle()
        bar.set_postfix_str("checking")

    def _settle(self) -> None:
        """End faults and clients, and wait until the fleet has nothing left to do.

        Raises TimeoutError.
        """
        self.nemesis.end()
        self.recovery = self._recovers()
        self.crowd.end()
        settle_by = time.monotonic() + SETTLE_LIMIT
        if not (self._is_settled(settle_by) and self._nights_end(settle_by)):
            self.errors.append(f"the fleet had not settled after {SETTLE_LIMIT:.0f} s")
        self.settled_at = time.monotonic()
        time.sleep(QUIET)
        self.errors += self.fleet.end()
        for onlooker in self.onlookers:
            onlooker.end()
        self._end_recording()

    def _recovers(self) -> float:
        """Seconds from now until every total has counted a ride that is taken from now on."""
        began, postgres = time.monotonic(), self.fleet.postgres
        ride = until(lambda: ask(postgres, NEXT_RIDE), "Postgres is away", SETTLE_LIMIT)
        until(lambda: ask(postgres, ALL_HAVE_IT, ride), "nobody counts rides", SETTLE_LIMIT)
        return time.monotonic() - began

    def _nights_end(self, settle_by: float) -> bool:
        """Run the job in full; then, when what it found is repaired, once more: that must agree.

        Returns False where the fleet does not settle before either.
        """
        if self.nights:
            self.nights.end()
            for full in (True, False):
                if not self._is_settled(settle_by):
                    return False
                self.last_nights.append(self.nights.play(full=full))
                repair_by = time.monotonic() + REPAIR_LIMIT
                self._wait_until(lambda postgres, _: not broken(postgres, (REPAIRED,)), repair_by)
        return True

    def _is_settled(self, by: float) -> bool:
        return all(self._wait_until(done, by) for done in (is_counted, is_delivered))

    def _wait_until(self, done: Condition, deadline: float) -> bool:
        while not self._is(done):
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK)
        return True

    def _is(self, done: Condition) -> bool:
        try:
            with closing(self.fleet.connect()) as connection, self.fleet.redis_client() as client:
                return done(connection, client)
        except (psycopg.Error, redis.RedisError, Unavailable):
            return False

    def _end_recording(self) -> None:
        for fault in self.nemesis.struck:
            if fault.kind in HIDE_ENTRIES:
                self.recording.write(Loss(fault.kind, fault.began, fault.ended))
        self.recording.close()
