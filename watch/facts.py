"""What is known of a fleet at one moment, in the terms of the page, the metrics and the terminal.

Distances are in metres, sizes in bytes, lags and ages in seconds. What was counted up to a limit
says so by a number that equals the limit (`MOST`). What can't be known is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from watch.runs import CompletedRun, Run

MOST = 10_000  # rides, staged records or entries that one look counts; more would take too long


@dataclass(frozen=True)
class Server:
    """A server, and why it can't be used; empty when it can."""

    up: bool
    reason: str = ""


UP = Server(True)
NO_ANSWER = "it does not answer"  # the reason of one that hangs


@dataclass(frozen=True)
class Lead:
    """Whether a process leads, where only one may work at a time, and how many stand by."""

    leads: bool
    standbys: int


@dataclass(frozen=True)
class Rides:
    """The records of all kinds (`rides` in JSON), as the streamer knows them, and the outbox."""

    taken: int  # sent and committed, or staged; exact up to `MOST` staged ones
    newest: int  # the position of the newest; 0 without any
    per_second: float  # over the last ten seconds, or 500 records
    last_sent: int
    sent: int  # records that were sent and committed, in all
    staged: int
    oldest_staged_seconds: float | None  # None when nothing is staged


@dataclass(frozen=True)
class Counts:
    """What a reader with a checkpoint has met and healed in all: as exact as its checkpoint."""

    gaps_healed: int
    records_healed: int
    distance_healed: Decimal
    resends_skipped: int
    entries_malformed: int
    entries_ignored: int
    entries_passed: int  # records of types that it does not handle
    crashes_injected: int
    resets_applied: int


@dataclass(frozen=True)
class Reader:
    """A reader of the log, by its checkpoint: one of our consumers, or an outside reader."""

    kind: str
    name: str
    processes: int | None  # sessions at work; None for readers that are not ours
    ride: int  # its position: it has all records up to this one
    records_behind: int  # up to MOST
    seconds_behind: float | None  # the age of the oldest record that it lacks; 0 when it has all
    total: Decimal | None = None  # of a total
    # From the POST's transaction to the reader's commit, of the newest record that it counted;
    # None when it has counted nothing for a minute.
    latency_seconds: float | None = None
    counts: Counts | None = None  # of a checkpoint
    silent_processes: int = 0  # sessions that hang, which are not at work
    types: tuple[str, ...] = ()  # of the records that it handles; an outside reader need not say
    ratings: int | None = None  # that a consumer of ratings has counted
    stars: int | None = None  # in these
    recounts: bool = False  # it makes its state anew, or was asked to
    # Records that it refuses, so that its state lacks them; up to MOST each.
    held_out: int = 0  # they wait for a person's decision
    dropped: int = 0  # given up

    @property
    def is_own(self) -> bool:
        return self.processes is not None


@dataclass(frozen=True)
class Agreement:
    """Whether the totals agree at the greatest position that they have all reached.

    A total that is more than MOST rides behind the first is too far behind to be compared. What a
    total holds out is added to it; those that were asked to recount are left out.
    """

    ride: int  # that position
    totals: dict[str, Decimal]  # each brought back to it
    too_far_behind: tuple[str, ...] = ()

    @property
    def agree(self) -> bool:
        return len(set(self.totals.values())) <= 1


@dataclass(frozen=True)
class Rollup:
    """Every minute is right up to the position `complete_to`."""

    lead: Lead
    complete_to: int
    minutes_set_aside: int
    dirty_minutes: int | None  # None while Redis does not tell


@dataclass(frozen=True)
class DeadReceipt:
    """A receipt that waits for a person's decision."""

    ride: int
    attempts: int
    reason: str
    since: datetime


@dataclass(frozen=True)
class HeldOut:
    """A record that a reader refuses, and that waits for a person's decision."""

    kind: str  # of the reader
    name: str
    position: int
    type: str
    reason: str
    attempts: int
    since: datetime
    retry: bool = False  # somebody has asked for another attempt


@dataclass(frozen=True)
class Receipts:
    """What became of the receipts; their states are those of `rocket_rides.words`."""

    workers: int
    delivered: int
    dead: int  # waiting for a person's decision
    being_sent_again: int  # dead ones that somebody replays: in flight or waiting again
    pending: int  # rides without an outcome, up to MOST
    oldest_undelivered_seconds: float | None  # None when every ride has an outcome
    swept: int  # rides that the log did not bring, so that the sweep queued them, in all
    newest_dead: tuple[DeadReceipt, ...] = ()
    given_up: int = 0  # those that became dead letters, in all
    queued: int = 0
    in_flight: int = 0
    waiting: int = 0  # for their next attempt
    entries_ignored: int = 0  # as of a reader
    entries_passed: int = 0
    entries_malformed: int = 0


@dataclass(frozen=True)
class Reconciliation:
    """A sum that was proven; `drift` is what each wrong total was off by, before its repair."""

    id: int
    at: datetime
    ride: int  # the position up to which it compared everything
    rides: int
    total: Decimal
    drift: dict[str, Decimal]
    unrepaired: tuple[str, ...] = ()  # totals that are still to apply the reset that it asked for


@dataclass(frozen=True)
class Happened:
    """Something that Postgres keeps with its time: a lead, a reset, a run, an entry, a record."""

    at: datetime
    words: str
    is_fault: bool = False
    is_entry: bool = False  # a malformed one


@dataclass(frozen=True)
class Database:
    """What Postgres says, in one snapshot."""

    rides: Rides
    streamer: Lead
    readers: tuple[Reader, ...]
    agreement: Agreement | None  # None without totals
    rollup: Rollup
    receipts: Receipts
    malformed_entries: dict[str, int]  # by the kind of the reader
    reconciliations: tuple[Reconciliation, ...]  # the newest first
    held_out: tuple[HeldOut, ...] = ()  # the newest first
    happened: tuple[Happened, ...] = ()
    # Who should be at work and is not, as `watch.absence` names them, and for how many seconds;
    # 0 as long as that may be a mere restart.
    absent: Mapping[str, float] = field(default_factory=dict)
    # Of the reconciliation: the last completed run, the newest that has failed since then, how many
    # have, and the one that is under way.
    completed_run: CompletedRun | None = None
    failed_run: Run | None = None
    failed_runs: int = 0  # up to MOST
    run_under_way: Run | None = None
    oldest_ride_at: datetime | None = None  # None without rides, or where it has no known time
    anybody: bool = True  # whether any process of a fleet has a session, the API's included
    # For how long, and for how many transactions, the oldest snapshot is held; a standby, or a slot
    # of replication, does not say since when.
    oldest_snapshot_seconds: float | None = 0
    oldest_snapshot_transactions: int = 0


@dataclass(frozen=True)
class Log:
    """What Redis says of the log."""

    length: int
    bytes: int  # as Redis estimates it; 0 where it does not tell
    last_entry_seconds: float | None  # by Redis' clock; None while it is empty
    added: int = 0  # entries that this stream was given, in all; 0 where Redis is older than 7


@dataclass(frozen=True)
class Facts:
    """What is known at one moment.

    What a server does not tell is None, because it is away, or does not let this user see it.
    """

    at: datetime  # by Postgres' clock, as all ages are; by this machine's while Postgres is away
    postgres: Server
    redis: Server
    database: Database | None
    log: Log | None
    gathered_in_seconds: float = 0
    looked_at: datetime | None = None  # by this machine's clock
