"""One run: clients post, the nemesis strikes, the fleet settles, and the evidence is checked."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import redis

from lab.chaos import checker, logs
from lab.chaos.accounts import Account, account
from lab.chaos.apart import most_memory
from lab.chaos.counts import read_counts
from lab.chaos.crowd import Crowd
from lab.chaos.derived import pending_entries, read_receipts, read_rollup
from lab.chaos.drifts import Drifts
from lab.chaos.evidence import Evidence, read_final_state
from lab.chaos.faults.scene import Scene
from lab.chaos.fleet import CONSUMERS, READERS, ROLLUPS, STREAM, Fleet
from lab.chaos.journal import Journal
from lab.chaos.judge import Verdict, judge
from lab.chaos.nemesis import EVERY, Nemesis, plan
from lab.chaos.nights import JOB, REST, Nights, can_run
from lab.chaos.nights_evidence import Night, NightsEvidence, read_nights
from lab.chaos.observer import LogReader, Watch
from lab.chaos.recorder import Recorder
from lab.chaos.recording import Loss, Recording, Rewind, read
from lab.chaos.recovery import LONGEST, Recovery, recoveries, too_slow
from rocket_rides.database import one_row
from rocket_rides.errors import Unavailable

LOOK = 0.1  # seconds
GLANCE = 0.5  # seconds between two looks at how far a run is
AFTERMATH = 1.0  # seconds in which clients still post after the last fault
# Seconds until all is counted and rolled up, and until each ride has its receipt: one that has
# failed for the fifth time waits for 81 s.
SETTLE_LIMIT = 90.0
RECEIPTS_LIMIT = 180.0
REPAIR_LIMIT = 60.0  # seconds until what the last nights have found is repaired
CATCH_UP = 50.0  # rides a second at the least; so both are longer where more is to be done
COUNT_AGAIN = 1.0  # seconds
MAKE_UP = 60.0  # seconds in which clients may make up for what the last restore has undone
# After these a consumer may read entries again, or count entries that the onlooker did not see.
LOSE_ENTRIES = {
    "redis-cut",
    "redis-flush",
    "redis-full",
    "redis-full-long",
    "redis-failover",
    "redis-split",
}
# After these the onlooker may not see entries that were there.
HIDE_ENTRIES = LOSE_ENTRIES | {"redis-crash", "client-kill", "clock-jump", "disk-full"}
# After these another Postgres is the primary, or the same one at an earlier time.
REWIND = {"postgres-restore", "postgres-sync-failover", "postgres-async-failover"}
# With these faults alone every reader reads every entry in time.
STOP_NO_READER = {"stranger", "slow-writer", "lost-writer", "receiver-fails"}
# Seconds; two idle rounds of a consumer, enough for it to count or re-read whatever is left.
QUIET = 1.2

Condition = Callable[[psycopg.Connection, redis.Redis], bool]

# Everything is sent, counted by every consumer, and rolled up.
SETTLED = """
    WITH newest AS (SELECT coalesce(max(id), 0) AS ride FROM rides)
    SELECT NOT EXISTS (SELECT FROM staged_log_records)
       AND (SELECT count(*) FROM checkpoints, newest
            WHERE kind = 'total' AND last_ride_id = newest.ride) = %s
       AND (SELECT complete_to = newest.ride FROM rollup_state, newest)
"""
BEHIND = """
    SELECT count(*) FROM rides WHERE id > least(
        (SELECT complete_to FROM receipts_state), (SELECT min(last_ride_id) FROM checkpoints)
    )
"""
# Seconds until the last receipt that waits is tried again, by its worker's own schedule. A clock
# that was ahead has made it wait longer, and at most for as long as a worker believes.
WAITS = """
    SELECT coalesce(ceil(extract(epoch FROM max(due_at) - now())), 0) FROM receipts
    WHERE outcome IS NULL AND due_at BETWEEN now() AND now() + interval '600 s'
"""
RIDES = "SELECT count(*) FROM rides"
DELIVERED = """
    SELECT complete_to = (SELECT coalesce(max(id), 0) FROM rides) FROM receipts_state
"""


@dataclass(frozen=True)
class Options:
    """The options of a run; see the command line."""

    seed: int
    seconds: float
    rate: float
    kinds: tuple[str, ...]
    rides: int | None = None
    stream_server: str = "valkey"
    waits: bool = False
    record: Path | None = None
    every: float = EVERY  # seconds from one fault to the next, on average
    strikes: int | None = None
    recovery: float = LONGEST  # seconds
    json: Path | None = None
    rest: float = REST  # seconds from the end of a nightly run to the next
    stock: bool = False  # servers, in place of the wheels'

    @property
    def keeps_log(self) -> bool:
        """Whether every reader can read every entry, whatever fails."""
        harmless = {"redis-failover"} if self.waits else set()
        return not (LOSE_ENTRIES - harmless) & set(self.kinds)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    evidence: Evidence
    findings: list[str]
    faults: Counter[str]
    moot: Counter[str]  # faults that could not be injected when their turn came
    said: logs.Said
    recoveries: list[Recovery]
    played: float  # seconds with clients
    seconds: float  # until everything had settled
    checked: float  # seconds that the check took
    memory: int  # bytes that chaos itself had at most
    verdict: Verdict | None = None  # of the specification, where the run was recorded


def is_counted(connection: psycopg.Connection, client: redis.Redis) -> bool:
    """Whether all that was taken is counted and rolled up."""
    settled = connection.execute(SETTLED, [len(CONSUMERS)]).fetchone() == (True,)
    return settled and not read_rollup(connection, client).dirty


def is_delivered(connection: psycopg.Connection, client: redis.Redis) -> bool:
    """Whether every ride has its receipt, or a dead letter, and nobody is at work on one."""
    delivered = connection.execute(DELIVERED).fetchone() == (True,)
    return delivered and not pending_entries(client, STREAM)


class Play:
    """A run on `fleet`, which has started."""

    def __init__(self, fleet: Fleet, options: Options, job: Sequence[str] = JOB) -> None:
        self.fleet = fleet
        self.options = options
        self.journal = Journal()
        self.scene = Scene(fleet, self.journal)
        self.recorder: Recorder | None = None
        self.nights = self._nights(job)
        self.last_nights: list[Night] = []
        self.reader = LogReader(lambda: fleet.redis_url, STREAM)
        if options.record:
            longest = int(fleet.settings["STREAM_MAX_LENGTH"])
            self.recording = Recording(options.record, longest)
            self.recorder = Recorder(lambda: fleet.postgres_url, self.recording)
            self.reader = LogReader(lambda: fleet.redis_url, STREAM, self.recording.append)
        self.watch = Watch(lambda: fleet.postgres_url, len(CONSUMERS))
        faults = plan(options.seed, options.seconds, options.kinds, options.every)
        self.nemesis = Nemesis(self.scene, faults, fleet.folder / "nemesis.log")
        self.crowd = Crowd(options.seed, fleet.api_port, options.rate)
        self.errors: list[str] = []
        self._count_at = 0.0  # on the monotonic clock

    def _nights(self, job: Sequence[str]) -> Nights | None:
        """The nightly job, if it is to run and can; `job` is its command.

        No drift is made where the specification judges: it has no step for that.
        """
        if "nightly" not in self.options.kinds or not can_run():
            return None
        drifts = Drifts(self.fleet)
        drifts.prepare()
        if not self.options.record:
            self.scene.drifts = drifts
        self.scene.nights = Nights(self.fleet, drifts, self.scene.over, job, self.options.rest)
        return self.scene.nights

    def run(self, bar: Any) -> Outcome:
        """Play the run to its end; `bar` shows the seconds. Whatever comes, no fault stays."""
        try:
            return self._run(bar)
        finally:
            self.scene.over.set()
            if self.nights:
                self.nights.stop()
            self.nemesis.end()

    def _run(self, bar: Any) -> Outcome:
        if self.recorder:
            self.recorder.start()
            self.recorder.wait_until_it_records()
        started, was_enough = time.monotonic(), False
        for actor in (self.reader, self.watch, self.crowd, self.nemesis, self.nights):
            if actor:
                actor.start()
        while (elapsed := time.monotonic() - started) < self.options.seconds:
            bar.update(round(elapsed - bar.n, 1))
            answered, struck = self.crowd.answered, len(self.nemesis.struck)
            bar.set_postfix_str(f"{answered:,} rides, {struck:,} faults", refresh=False)
            if was_enough := self._is_enough(answered, struck):
                break
            time.sleep(GLANCE)
        bar.set_postfix_str("settling")
        played = self.settle(self.options.rides if was_enough else None) - started
        bar.set_postfix_str("checking")
        return self.judge(played, time.monotonic() - started)

    def _is_enough(self, answered: int, struck: int) -> bool:
        """Whether there are as many rides, and as many faults, as are wanted, if any are."""
        rides, strikes = self.options.rides, self.options.strikes
        if not (rides or strikes) or struck < (strikes or 0) or answered < (rides or 0):
            return False
        if time.monotonic() < self._count_at:
            return False
        self._count_at = time.monotonic() + COUNT_AGAIN
        return self._number(RIDES) >= (rides or 0)  # some were undone

    def settle(self, rides: int | None) -> float:
        """End faults and clients, and wait until the fleet has nothing left to do.

        There are to be so many `rides` still, or again. Returns when the clients had ended.
        """
        self.nemesis.end()
        time.sleep(AFTERMATH)
        deadline = time.monotonic() + MAKE_UP
        while rides and self._number(RIDES) < rides and time.monotonic() < deadline:
            time.sleep(COUNT_AGAIN)
        self.crowd.end()
        ended = time.monotonic()
        more = self._number(BEHIND) / CATCH_UP
        self._wait_until(is_counted, SETTLE_LIMIT + more, "the fleet had not settled")
        more += self._number(WAITS)
        self._wait_until(is_delivered, RECEIPTS_LIMIT + more, "not every ride had its receipt")
        if self.nights:
            self._end_nights(self.nights)
        time.sleep(QUIET)
        self.errors += self.fleet.end()
        for onlooker in (self.watch, self.reader):
            onlooker.end()
        if self.recorder:
            self._end_recording(self.recorder)
        return ended

    def _end_nights(self, nights: Nights) -> None:
        """A run that compares everything, and, when that is repaired, one that must agree."""
        nights.end()
        self.last_nights.append(nights.play(full=True))
        deadline = time.monotonic() + REPAIR_LIMIT
        while (look := nights.drifts.look()) is None or look.there:
            if time.monotonic() > deadline:
                break
            time.sleep(LOOK)
        self._wait_until(is_counted, SETTLE_LIMIT, "after the repairs, the fleet had not settled")
        self._wait_until(is_delivered, RECEIPTS_LIMIT, "not every lost receipt was delivered")
        self.last_nights.append(nights.play())

    def _number(self, query: str) -> int:
        """The answer to a query for a number; 0 while Postgres is away."""
        try:
            with closing(self.fleet.connect()) as connection:
                return int(one_row(connection.execute(query))[0])
        except (psycopg.Error, Unavailable):
            return 0

    def _end_recording(self, recorder: Recorder) -> None:
        recorder.end()
        for fault in self.nemesis.struck:
            if fault.kind in HIDE_ENTRIES:
                self.recording.write(Loss(fault.kind, fault.began, fault.ended))
            if fault.kind in REWIND:
                self.recording.write(Rewind(fault.kind, fault.ended))
        self.recording.close(cut_short=not recorder.has_all)

    def _wait_until(self, done: Condition, limit: float, otherwise: str) -> None:
        deadline = time.monotonic() + limit
        while not self._is(done):
            if time.monotonic() > deadline:
                self.errors.append(f"{otherwise} after {limit:.0f} s")
                break
            time.sleep(LOOK)

    def _is(self, done: Condition) -> bool:
        try:
            with closing(self.fleet.connect()) as connection, self.fleet.redis_client() as client:
                return done(connection, client)
        except (psycopg.Error, redis.RedisError, Unavailable):
            return False

    def _accounts(self) -> dict[tuple[str, str], Account]:
        def of(*names: str) -> Account:
            return account(
                (service.log, service.exits) for service in (services[name] for name in names)
            )

        services = self.fleet.services
        totals = {("total", name): of(name) for name in CONSUMERS}
        return {**totals, ("rollup", "rollup"): of(*ROLLUPS)}

    def judge(self, played: float, seconds: float) -> Outcome:
        """Collect the evidence and have it checked."""
        began = time.monotonic()
        services = self.fleet.services.values()
        clients = self.crowd.hand_over()
        self.errors += clients.troubles + self.journal.troubles
        self.errors += [f"a fault failed: {failure}" for failure in self.nemesis.failures]
        onlookers = (self.reader, self.watch, self.recorder, self.nights)
        self.errors += [onlooker.error for onlooker in onlookers if onlooker and onlooker.error]
        if self.nemesis.moot and not self.nemesis.struck:
            self.errors.append("no fault could be injected on this machine")
        self.errors += [failure for server in self.fleet.servers for failure in server.failures]
        self.errors += [f"invalid entry in the log: {entry}" for entry in self.reader.invalid]
        for service in services:
            self.errors += [f"{service.name} said: {line}" for line in logs.unexpected(service)]
        self.errors += logs.broken(
            (server.server.log for server in self.fleet.servers),
            disks_are_filled="disk-full" in self.options.kinds,
        )
        with closing(self.fleet.connect()) as connection, self.fleet.redis_client() as client:
            final = read_final_state(connection)
            rollup = read_rollup(connection, client)
            receipts = read_receipts(connection, client, STREAM, self.scene.jumps)
            counts = read_counts(connection)
            nights = self._read_nights(connection)
        evidence = Evidence(
            clients.asks + self.journal.asks,
            final,
            self.reader.told,
            [end for service in services for end in service.exits],
            self.reader.readings,
            self.errors,
            CONSUMERS,
            restores=self.scene.restores,
            in_vain=self.scene.in_vain,
            foreign=self.scene.foreign,
            blamed=[line for service in services for line in logs.blamed(service)],
            read_again=bool(LOSE_ENTRIES & set(self.options.kinds)),
            left_unread=bool(set(self.options.kinds) - STOP_NO_READER),
            keeps_log=self.options.keeps_log,
            rollup=rollup,
            receipts=receipts,
            deliveries=self.fleet.receiver.deliveries,
            counts=counts,
            nights=nights,
            accounts=self._accounts(),
            batch_size=int(self.fleet.settings["BATCH_SIZE"]),
        )
        struck, restores = self.nemesis.struck, self.scene.restores
        recovered = recoveries(struck, evidence.asks, self.watch, restores)
        found = [*checker.check(evidence), *too_slow(recovered, self.options.recovery)]
        if struck and not recovered:
            found.append("no recovery was seen")
        checked = time.monotonic() - began
        verdict = self._replay()
        return Outcome(
            evidence,
            found + (verdict.findings if verdict else []),
            Counter(fault.kind for fault in self.nemesis.struck),
            self.nemesis.moot,
            logs.said(self.fleet.services[name].log for name in READERS),
            recovered,
            played,
            seconds,
            checked,
            most_memory() + self.crowd.memory + self.fleet.receiver.memory,
            verdict,
        )

    def _read_nights(self, connection: psycopg.Connection) -> NightsEvidence | None:
        if (nights := self.nights) is None:
            return None
        return read_nights(connection, nights.all, nights.drifts, self.last_nights)

    def _replay(self) -> Verdict | None:
        """What the specification says of the recording."""
        file = self.options.record
        return judge(lambda: read(file)) if file else None
