"""What reads the log, or rides: a total's reset, the rollup with its Ick, the receipts' group.

They stand on a log that is right: a reader gets as far as `sent` and misses nothing. This is what
the invariants of the core say (4, 5 and 11), so what is shown of them holds on the core too.
"""

from collections.abc import Iterable

from msgspec.structs import asdict, astuple

from specification.explorer import System, Value, named, require, swap


class Process(Value, frozen=True):
    name: int
    known: int | None = None  # the checkpoint, as it has read it


class Totals(Value, frozen=True):
    sent: int = 0
    at: int = 0  # the checkpoint
    total: int = 0
    processes: tuple[Process, ...] = (Process(1), Process(2))
    frozen: int | None = None  # last_sent, as a run has read it that found the total wrong
    pending: int | None = None  # a reset to the sum up to this ride
    spoilt: int = 0
    runs: int = 0


class Reset(System):
    """A total, and two processes that count under its name: ride n has the distance 4^n.

    All of it is in one database, and a run ends with its connection, so a fail-over brings back an
    earlier state of the whole, and nothing new. A run that finds the total right changes nothing.
    """

    start = Totals()
    invariants = {"12": lambda s: is_right_or_spoilt(s), "11": lambda s: is_settled(s)}

    def __init__(self, rides: int, runs: int) -> None:
        self.rides, self.runs = rides, runs

    def sends(self, s: Totals) -> Totals:
        """the streamer sends the next ride"""
        return s.but(sent=s.sent + 1)

    def loads(self, s: Totals, process: int) -> Totals:
        """process {process} loads the checkpoint, and reads from there"""
        mine = named(s.processes, process)
        require(mine.known != s.at)
        return s.but(processes=swap(s.processes, mine, mine.but(known=s.at)))

    def counts(self, s: Totals, process: int, upto: int) -> Totals:
        """process {process} counts up to ride {upto}"""
        mine = named(s.processes, process)
        require(s.pending is None and mine.known == s.at < upto <= s.sent)
        total = s.total + exact(upto) - exact(mine.known)
        return s.but(at=upto, total=total, processes=swap(s.processes, mine, mine.but(known=upto)))

    def crashes(self, s: Totals, process: int) -> Totals:
        """process {process} crashes"""
        mine = named(s.processes, process)
        return s.but(processes=swap(s.processes, mine, Process(process)))

    def is_spoilt(self, s: Totals) -> Totals:
        """somebody makes the total wrong"""
        return s.but(total=s.total + 1, spoilt=s.spoilt + 1)

    def freezes(self, s: Totals) -> Totals:
        """a reconciliation looks at last_sent and at the total, which is wrong"""
        require(s.frozen is None and s.total != exact(s.at))
        return s.but(frozen=s.sent, runs=s.runs + 1)

    def emits(self, s: Totals) -> Totals:
        """the reconciliation asks for a reset"""
        require(s.frozen is not None)
        return s.but(frozen=None, pending=s.frozen)

    def applies(self, s: Totals, process: int) -> Totals:
        """process {process} locks the checkpoint, finds the reset pending, and applies it"""
        mine = named(s.processes, process)
        require(s.pending is not None and mine.known is not None)
        to = min(s.sent, max(s.pending or 0, s.at))
        processes = swap(s.processes, mine, mine.but(known=to))
        return s.but(at=to, total=exact(to), pending=None, processes=processes)

    goes_on = (emits, applies, loads, freezes, counts)
    by_chance = (sends, crashes, is_spoilt)

    def ranges(self, s: Totals) -> dict[str, Iterable[int]]:
        return {"process": (1, 2), "upto": range(s.at + 1, s.sent + 1)}

    def is_within(self, s: Totals) -> bool:
        return s.sent <= self.rides and s.runs <= self.runs and s.spoilt <= 1

    def is_complete(self, s: Totals, me: None) -> bool:
        return s.at == s.sent and s.total == exact(s.at)


def is_right_or_spoilt(s: Totals) -> bool:
    """The total is right, or wrong by what was done to it, which a reset takes away for good."""
    return s.total - exact(s.at) in {0, s.spoilt}


def is_settled(s: Totals) -> bool:
    """No checkpoint is past last_sent."""
    return s.at <= s.sent


def exact(upto: int) -> int:
    return sum(4**ride for ride in range(1, upto + 1))


class Ick(Value, frozen=True):
    name: int  # its generation
    produced: int = 0  # the lowest ride of the minute, or none
    reserved: int = 0


class Lead(Value, frozen=True):
    """A leader's session: what it knows and has in hand."""

    name: int
    at: int
    marked: int = 0  # up to there, to be followed by the checkpoint
    reserved: bool = False
    computed: bool = False
    lowest: int = 0  # as the Ick said, after `at` was reached


class Rows(Value, frozen=True):
    """In Postgres."""

    sent: int = 0
    complete_to: int = 0
    generation: int = 0
    computed_to: int = 0  # with its rides up to there, the minute was computed


class Minute(Rows, frozen=True):
    backup: Rows | None = None
    leads: tuple[Lead, ...] = ()
    icks: tuple[Ick, ...] = ()
    begun: int = 0
    flushes: int = 0
    failovers: int = 0


class Rollup(System):
    """One minute, which has all rides: others are marked, computed and committed beside it alike.

    A lead that was overtaken goes on until Postgres, or the Ick that is gone, refuses it.
    """

    start = Minute()
    invariants = {"8": lambda s: minute_is_right(s)}

    def __init__(self, rides: int, generations: int, broken: str = "") -> None:
        self.rides, self.generations, self.broken = rides, generations, broken

    def sends(self, s: Minute) -> Minute:
        """the streamer sends the next ride"""
        return s.but(sent=s.sent + 1)

    def draws(self, s: Minute, new_generation: int) -> Minute:
        """a leader deletes the Ick of before, and draws generation {new_generation}"""
        able = {ick.name for ick in s.icks} | {m.name for m in s.leads if m == self.fresh(s, m)}
        require(not any(mine.name == s.generation and mine.name in able for mine in s.leads))
        return self.overtakes(s, new_generation)

    def overtakes(self, s: Minute, new_generation: int) -> Minute:
        """another leader deletes the Ick of before, and draws generation {new_generation}"""
        icks = tuple(ick for ick in s.icks if ick.name != s.generation)
        leads = (*s.leads[-1:], Lead(new_generation, s.complete_to))
        return s.but(generation=new_generation, icks=icks, begun=new_generation, leads=leads)

    def makes_its_ick(self, s: Minute, generation: int) -> Minute:
        """leader {generation} makes its Ick"""
        mine = named(s.leads, generation)
        require(mine == self.fresh(s, mine) and mine.name not in (ick.name for ick in s.icks))
        return s.but(icks=(*s.icks, Ick(generation)))

    def marks(self, s: Minute, generation: int, upto: int) -> Minute:
        """leader {generation} marks the minutes of the rides up to {upto}"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        require(mine == Lead(generation, mine.at) and mine.at < upto)
        icks = tuple(other for other in s.icks if other != ick)
        if self.broken == "older-generation" and generation > 1:
            ick, icks = Ick(generation - 1), s.icks
        marked = ick.but(produced=lowest(ick.produced, mine.at + 1))
        return s.but(icks=(*icks, marked), leads=swap(s.leads, mine, mine.but(marked=upto)))

    def moves(self, s: Minute, generation: int) -> Minute:
        """leader {generation} moves the checkpoint"""
        mine = named(s.leads, generation)
        require(mine.marked and s.generation == generation)
        return s.but(leads=swap(s.leads, mine, Lead(generation, mine.marked)))

    def reserves(self, s: Minute, generation: int) -> Minute:
        """leader {generation} reserves what is dirty"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        dirty = lowest(ick.produced, ick.reserved)
        require(dirty and mine == Lead(generation, mine.at))
        icks = swap(s.icks, ick, ick.but(produced=0, reserved=dirty))
        return s.but(icks=icks, leads=swap(s.leads, mine, mine.but(reserved=True)))

    def computes(self, s: Minute, generation: int) -> Minute:
        """leader {generation} computes the reserved minutes"""
        mine = named(s.leads, generation)
        require(mine.reserved and not mine.computed and s.generation == generation)
        return s.but(computed_to=s.sent, leads=swap(s.leads, mine, mine.but(computed=True)))

    def commits(self, s: Minute, generation: int) -> Minute:
        """leader {generation} commits them to its Ick"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        require(mine.computed)
        leads = swap(s.leads, mine, Lead(generation, mine.at))
        return s.but(icks=swap(s.icks, ick, ick.but(reserved=0)), leads=leads)

    def asks_the_ick(self, s: Minute, generation: int) -> Minute:
        """leader {generation} asks its Ick for the lowest ride that is not rolled up"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        require(mine == Lead(generation, mine.at) and mine.at > s.complete_to)
        dirty = lowest(ick.produced, ick.reserved)
        return s.but(leads=swap(s.leads, mine, mine.but(lowest=dirty or mine.at + 1)))

    def completes(self, s: Minute, generation: int) -> Minute:
        """leader {generation} says that the minutes are complete up to there"""
        mine = named(s.leads, generation)
        require(mine.lowest and s.generation == generation)
        leads = swap(s.leads, mine, mine.but(lowest=0))
        return s.but(complete_to=max(s.complete_to, mine.lowest - 1), leads=leads)

    def crashes(self, s: Minute, generation: int) -> Minute:
        """leader {generation} crashes, or finds that its lead is over"""
        return s.but(leads=swap(s.leads, named(s.leads, generation)))

    def is_flushed(self, s: Minute) -> Minute:
        """Redis is flushed"""
        return s.but(icks=(), flushes=s.flushes + 1)

    def is_backed_up(self, s: Minute) -> Minute:
        """to this moment Postgres will be set back"""
        require(s.backup is None)
        return s.but(backup=Rows(*astuple(s)[:4]))

    def fails_over(self, s: Minute) -> Minute:
        """Postgres fails over with loss"""
        require(s.backup is not None)
        return s.but(**asdict(s.backup), backup=None, leads=(), failovers=s.failovers + 1)

    goes_on = (
        commits,
        computes,
        completes,
        moves,
        reserves,
        asks_the_ick,
        marks,
        makes_its_ick,
        draws,
        fails_over,
    )
    by_chance = (sends, overtakes, crashes, is_flushed, is_backed_up)

    def ranges(self, s: Minute) -> dict[str, Iterable[int]]:
        return {
            "generation": [mine.name for mine in s.leads],
            "new_generation": [s.begun + 1],
            "upto": range(s.sent, 0, -1),
        }

    def is_within(self, s: Minute) -> bool:
        failovers = s.failovers + (s.backup is not None)
        used = s.sent <= self.rides and s.begun <= self.generations
        return used and s.flushes <= 1 and failovers <= 1

    def is_complete(self, s: Minute, me: None) -> bool:
        return s.complete_to == s.sent

    def fresh(self, s: Minute, mine: Lead) -> Lead:
        return Lead(mine.name, s.complete_to)


def lowest(*rides: int) -> int:
    return min(filter(None, rides), default=0)


def minute_is_right(s: Minute) -> bool:
    """The minute has been computed with all of its rides up to complete_to."""
    return s.computed_to >= s.complete_to


class Worker(Value, frozen=True):
    name: int
    entry: int | None = None  # in hand; 0: swept up
    done: bool = False  # delivered
    sweeps: int = 0  # how many looks it has taken
    waits: bool = False  # the sweep has seen it pending


class Receipt(Value, frozen=True):
    is_sent: bool = False
    outcome: bool = False
    delivered: bool = False  # as the receiver knows
    complete: bool = False  # complete_to is past it
    log: tuple[int, ...] = ()
    appended: int = 0
    last_delivered: int = 0
    pending: tuple[tuple[int, int], ...] = ()  # entry, worker
    workers: tuple[Worker, ...] = ()
    losses: int = 0


class Group(System):
    """One ride, which may be in the log before it is committed, and more than once.

    A worker that crashes leaves its entries pending; others claim them. One that has several
    receipts in hand is as several workers. The sweep makes up for what the log has lost.
    """

    def __init__(self, workers: int, entries: int) -> None:
        self.entries = entries
        self.invariants = {"outcome": outcome_was_delivered, "complete_to": complete_has_outcome}
        self.start = Receipt(workers=tuple(Worker(name) for name in range(1, workers + 1)))

    def appends(self, s: Receipt) -> Receipt:
        """the streamer appends the ride"""
        return s.but(log=(*s.log, s.appended + 1), appended=s.appended + 1)

    def commits(self, s: Receipt) -> Receipt:
        """the streamer commits it"""
        require(s.appended and not s.is_sent)
        return s.but(is_sent=True)

    def reads(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} is given the next entry"""
        unread = [entry for entry in s.log if entry > s.last_delivered]
        require(unread)
        return s.but(last_delivered=unread[0], pending=(*s.pending, (unread[0], worker)))

    def takes_up(self, s: Receipt, worker: int, entry: int) -> Receipt:
        """worker {worker} takes up entry {entry}, whose ride was committed"""
        mine = named(s.workers, worker)
        require(s.is_sent and mine.entry is None and (entry, worker) in s.pending)
        return s.but(workers=swap(s.workers, mine, mine.but(entry=entry)))

    def delivers(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} delivers the receipt"""
        mine = named(s.workers, worker)
        require(mine.entry is not None and not mine.done)
        return s.but(delivered=True, workers=swap(s.workers, mine, mine.but(done=True)))

    def saves(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} writes the outcome"""
        require(named(s.workers, worker).done and not s.outcome)
        return s.but(outcome=True)

    def acknowledges(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} acknowledges what it has in hand, as there is an outcome"""
        mine = named(s.workers, worker)
        require(mine.entry is not None and s.outcome)
        pending = tuple(each for each in s.pending if each[0] != mine.entry)
        free = mine.but(entry=None, done=False)
        return s.but(pending=pending, workers=swap(s.workers, mine, free))

    def claims(self, s: Receipt, worker: int, entry: int) -> Receipt:
        """worker {worker} claims entry {entry} of another, or acknowledges that it is gone"""
        [old] = [each for each in s.pending if each[0] == entry] or [None]
        require(old and entry not in [other.entry for other in s.workers])
        require(entry not in s.log or (s.is_sent and old != (entry, worker)))
        return s.but(pending=swap(s.pending, old, *((entry, worker),) * (entry in s.log)))

    def crashes(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} crashes"""
        return s.but(workers=swap(s.workers, named(s.workers, worker), Worker(worker)))

    def looks_at_unread(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} sweeps: reads last_sent, then that all entries up to there were read"""
        mine = named(s.workers, worker)
        require(s.is_sent and not s.complete and not any(other.sweeps for other in s.workers))
        require(not any(entry > s.last_delivered for entry in s.log))
        return s.but(workers=swap(s.workers, mine, mine.but(sweeps=1)))

    def looks_at_pending(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} sweeps: reads what is pending"""
        mine = named(s.workers, worker)
        require(mine.sweeps == 1)
        looked = mine.but(sweeps=2, waits=bool(s.pending))
        return s.but(workers=swap(s.workers, mine, looked))

    def sweeps(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} sweeps: takes up the ride if it has no outcome, or moves complete_to"""
        mine = named(s.workers, worker)
        require(mine.sweeps == 2)
        swept = mine.but(sweeps=0, waits=False)
        if not s.outcome and not mine.waits and mine.entry is None:
            swept = swept.but(entry=0)
        return s.but(complete=s.outcome, workers=swap(s.workers, mine, swept))

    def is_flushed(self, s: Receipt) -> Receipt:
        """Redis is flushed, and the group is made anew"""
        return s.but(log=(), pending=(), last_delivered=0, losses=s.losses + 1)

    def is_trimmed(self, s: Receipt, count: int) -> Receipt:
        """the log is trimmed of its first {count} entries"""
        return s.but(log=s.log[count:], losses=s.losses + 1)

    goes_on = (
        acknowledges,
        saves,
        delivers,
        takes_up,
        claims,
        reads,
        commits,
        sweeps,
        looks_at_pending,
        looks_at_unread,
    )
    by_chance = (appends, crashes, is_flushed, is_trimmed)

    def ranges(self, s: Receipt) -> dict[str, Iterable[int]]:
        return {
            "worker": [worker.name for worker in s.workers],
            "entry": range(1, s.appended + 1),
            "count": range(1, len(s.log)),
        }

    def is_within(self, s: Receipt) -> bool:
        return s.appended <= self.entries and s.losses <= 1

    def is_complete(self, s: Receipt, me: None) -> bool:
        return s.is_sent in {False, s.complete and not s.pending}


def outcome_was_delivered(s: Receipt) -> bool:
    """What has an outcome, its receiver has."""
    return s.delivered or not s.outcome


def complete_has_outcome(s: Receipt) -> bool:
    """Every ride up to complete_to has an outcome."""
    return s.outcome or not s.complete
