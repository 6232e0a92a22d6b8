"""What reads the log, or rides: the reset of a total, the rollup with its Ick, receipts in a group.

They stand on a log that is right: a reader gets as far as `sent` and misses nothing. This is what
the invariants of the core say (4, 5 and 11), so what is shown of them holds on the core too.
"""

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import asdict, astuple

from specification.explorer import Refused, System, Value, named, require, swap


class Process(Value, frozen=True):
    name: int
    known: int | None = None  # the checkpoint, as it has read it


class Totals(Value, frozen=True):
    sent: int = 0
    at: int = 0  # the checkpoint
    total: int = 0
    processes: tuple[Process, ...] = (Process(1), Process(2))
    frozen: int | None = None  # last_sent, as a run has read it
    pending: int | None = None  # a reset to the sum up to this ride
    spoilt: int = 0
    runs: int = 0


class Reset(System):
    """A total, and two processes that count under its name. A run that finds it right does nothing.

    All is in one database, and a run ends with its connection: a fail-over brings nothing new.
    """

    def sends(self, s: Totals) -> Totals:
        """the streamer sends the next ride"""
        return s.but(sent=s.sent + 1)

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

    def applies(self, s: Totals, process: int) -> Totals:
        """process {process} locks the checkpoint, finds the reset pending, and applies it"""
        mine = named(s.processes, process)
        require(s.pending is not None and mine.known is not None)
        to = max(s.pending or 0, s.at)
        processes = swap(s.processes, mine, mine.but(known=to))
        return s.but(at=to, total=exact(to), pending=None, processes=processes)

    def crashes(self, s: Totals, process: int) -> Totals:
        """process {process} crashes"""
        return s.but(processes=swap(s.processes, named(s.processes, process), Process(process)))

    def ranges(self, s: Totals) -> dict[str, Iterable[int]]:
        return {"process": (1, 2), "upto": range(s.at + 1, s.sent + 1)}

    def is_complete(self, s: Totals, me: None) -> bool:
        return s.at == s.sent and s.total == exact(s.at)

    def is_right_or_spoilt(self, s: Totals) -> bool:
        """The total is right, or wrong by what was done to it, which a reset takes away."""
        return s.total - exact(s.at) in {0, s.spoilt}

    def is_settled(self, s: Totals) -> bool:
        """No checkpoint is past last_sent."""
        return s.at <= s.sent

    start = Totals()
    by_chance = (sends, is_spoilt, crashes)
    invariants: ClassVar = {"12": is_right_or_spoilt, "11": is_settled}


def exact(upto: int) -> int:
    """The distance of the rides up to `upto`: each has a digit of its own, of base four."""
    return sum(4**ride for ride in range(1, upto + 1))


class Ick(Value, frozen=True):
    name: int  # its generation
    produced: int = 0  # the lowest ride of the minute, or none
    reserved: int = 0


class Lead(Value, frozen=True):
    """A leader's session: what it knows and has in hand."""

    name: int  # its generation
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
    begun: int = 0  # from here on: what has been used of the bounds
    flushes: int = 0
    failovers: int = 0


class Rollup(System):
    """One minute, which has all rides: others do the same at the same time, or hold it back.

    A lead that was overtaken goes on until Postgres, or the Ick that is gone, refuses it.
    """

    def sends(self, s: Minute) -> Minute:
        """the streamer sends the next ride"""
        return s.but(sent=s.sent + 1)

    def overtakes(self, s: Minute, new: int) -> Minute:
        """another leader deletes the Ick of before, and draws generation {new}"""
        icks = tuple(ick for ick in s.icks if ick.name != s.generation)
        leads = (*s.leads[-1:], Lead(new, s.complete_to))
        return s.but(generation=new, icks=icks, begun=new, leads=leads)

    def draws(self, s: Minute, new: int) -> Minute:
        """a leader deletes the Ick of before, and draws generation {new}"""
        fresh, icks = Lead(s.generation, s.complete_to), {ick.name for ick in s.icks}
        leading = [mine for mine in s.leads if mine.name == s.generation]
        require(not any(mine == fresh or mine.name in icks for mine in leading))
        return self.overtakes(s, new)

    def makes_its_ick(self, s: Minute, generation: int) -> Minute:
        """leader {generation} makes its Ick"""
        require(named(s.leads, generation) == Lead(generation, s.complete_to))
        require(generation not in {ick.name for ick in s.icks})
        return s.but(icks=(*s.icks, Ick(generation)))

    def asks_the_ick(self, s: Minute, generation: int) -> Minute:
        """leader {generation} asks its Ick for the lowest ride that is not rolled up"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        require(mine == Lead(generation, mine.at) and mine.at > s.complete_to)
        lowest = lowest_of(ick.produced, ick.reserved) or mine.at + 1
        return s.but(leads=swap(s.leads, mine, mine.but(lowest=lowest)))

    def completes(self, s: Minute, generation: int) -> Minute:
        """leader {generation} says that the minutes are complete up to there"""
        mine = named(s.leads, generation)
        require(mine.lowest and s.generation == generation)
        leads = swap(s.leads, mine, mine.but(lowest=0))
        return s.but(complete_to=max(s.complete_to, mine.lowest - 1), leads=leads)

    def marks(self, s: Minute, generation: int, upto: int) -> Minute:
        """leader {generation} marks the minutes of the rides up to {upto}"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        require(mine == Lead(generation, mine.at) and mine.at < upto)
        others = swap(s.icks, ick)
        if self.broken == "older-generation" and generation > 1:
            ick, others = Ick(generation - 1), s.icks
        marked = ick.but(produced=lowest_of(ick.produced, mine.at + 1))
        return s.but(icks=(*others, marked), leads=swap(s.leads, mine, mine.but(marked=upto)))

    def moves(self, s: Minute, generation: int) -> Minute:
        """leader {generation} moves the checkpoint"""
        mine = named(s.leads, generation)
        require(mine.marked and s.generation == generation)
        return s.but(leads=swap(s.leads, mine, Lead(generation, mine.marked)))

    def reserves(self, s: Minute, generation: int) -> Minute:
        """leader {generation} reserves what is dirty"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        dirty = lowest_of(ick.produced, ick.reserved)
        require(dirty and mine == Lead(generation, mine.at))
        icks = swap(s.icks, ick, Ick(generation, reserved=dirty))
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
        icks = swap(s.icks, ick, ick.but(reserved=0))
        return s.but(icks=icks, leads=swap(s.leads, mine, Lead(generation, mine.at)))

    def crashes(self, s: Minute, generation: int) -> Minute:
        """leader {generation} crashes, or finds that its lead is over"""
        return s.but(leads=swap(s.leads, named(s.leads, generation)))

    def is_flushed(self, s: Minute) -> Minute:
        """Redis is flushed"""
        return s.but(icks=(), flushes=s.flushes + 1)

    def is_backed_up(self, s: Minute) -> Minute:
        """to this moment Postgres will be set back"""
        require(s.backup is None)
        return s.but(backup=Rows(*astuple(s)[:4]), failovers=s.failovers + 1)

    def fails_over(self, s: Minute) -> Minute:
        """Postgres fails over with loss"""
        if s.backup is None:
            raise Refused
        return s.but(**asdict(s.backup), backup=None, leads=())

    def ranges(self, s: Minute) -> dict[str, Iterable[int]]:
        generations = [lead.name for lead in s.leads]
        return {"generation": generations, "new": [s.begun + 1], "upto": range(s.sent, 0, -1)}

    def is_complete(self, s: Minute, me: None) -> bool:
        return s.complete_to == s.sent

    def minute_is_right(self, s: Minute) -> bool:
        """The minute has been computed with all of its rides up to complete_to."""
        return s.computed_to >= s.complete_to

    start = Minute()
    by_chance = (sends, overtakes, crashes, is_flushed, is_backed_up)
    invariants: ClassVar = {"8": minute_is_right}


def lowest_of(*rides: int) -> int:
    return min(filter(None, rides), default=0)


class Worker(Value, frozen=True):
    name: int
    entry: int | None = None  # in hand; 0 if it was swept up
    delivered: bool = False
    looked: int = 0  # how often, for the sweep
    waits: bool = False  # as the sweep saw it pending


class Receipt(Value, frozen=True):
    is_sent: bool = False
    outcome: bool = False
    is_complete: bool = False  # complete_to is past it
    delivered: bool = False  # as the receiver knows
    log: tuple[int, ...] = ()
    last_delivered: int = 0
    pending: tuple[tuple[int, int], ...] = ()  # entry, worker
    workers: tuple[Worker, ...] = (Worker(1), Worker(2))
    appended: int = 0  # from here on: what has been used of the bounds
    losses: int = 0


class Group(System):
    """One ride's receipt: its entry may be there before the commit, and more than once.

    Whoever crashes leaves its entries pending. A worker with two in hand is as two workers.
    """

    def appends(self, s: Receipt) -> Receipt:
        """the streamer appends the ride"""
        return s.but(log=(*s.log, s.appended + 1), appended=s.appended + 1)

    def commits(self, s: Receipt) -> Receipt:
        """the streamer commits the ride"""
        require(s.appended and not s.is_sent)
        return s.but(is_sent=True)

    def looks_at_unread(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} sweeps: reads last_sent, and then that no entry up to there is unread"""
        mine = named(s.workers, worker)
        require(s.is_sent and not s.is_complete and not any(each.looked for each in s.workers))
        require(not any(entry > s.last_delivered for entry in s.log))
        return s.but(workers=swap(s.workers, mine, mine.but(looked=1)))

    def looks_at_pending(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} sweeps: reads what is pending"""
        mine = named(s.workers, worker)
        require(mine.looked == 1)
        looked = mine.but(looked=2, waits=bool(s.pending))
        return s.but(workers=swap(s.workers, mine, looked))

    def sweeps(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} sweeps: takes up the ride if it has no outcome, or moves complete_to"""
        mine = named(s.workers, worker)
        require(mine.looked == 2)
        is_lost = not (s.outcome or mine.waits or mine.entry)
        swept = mine.but(looked=0, waits=False, entry=0 if is_lost else mine.entry)
        return s.but(is_complete=s.outcome, workers=swap(s.workers, mine, swept))

    def reads(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} is given the next entry"""
        unread = [entry for entry in s.log if entry > s.last_delivered]
        require(unread)
        return s.but(last_delivered=unread[0], pending=(*s.pending, (unread[0], worker)))

    def claims(self, s: Receipt, worker: int, entry: int) -> Receipt:
        """worker {worker} claims entry {entry} of another, or acknowledges that it is gone"""
        old = (entry, dict(s.pending).get(entry, worker))
        require(entry in dict(s.pending) and entry not in {each.entry for each in s.workers})
        require(entry not in s.log or (s.is_sent and old != (entry, worker)))
        return s.but(pending=swap(s.pending, old, *[(entry, worker)] * (entry in s.log)))

    def takes_up(self, s: Receipt, worker: int, entry: int) -> Receipt:
        """worker {worker} takes up entry {entry}, whose ride was committed"""
        mine = named(s.workers, worker)
        require(s.is_sent and mine.entry is None and (entry, worker) in s.pending)
        return s.but(workers=swap(s.workers, mine, mine.but(entry=entry)))

    def delivers(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} delivers the receipt"""
        mine = named(s.workers, worker)
        require(mine.entry is not None and not mine.delivered)
        return s.but(delivered=True, workers=swap(s.workers, mine, mine.but(delivered=True)))

    def saves(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} writes the outcome"""
        require(named(s.workers, worker).delivered and not s.outcome)
        return s.but(outcome=True)

    def acknowledges(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} acknowledges what it has in hand, as there is an outcome"""
        mine = named(s.workers, worker)
        require(mine.entry is not None and s.outcome)
        pending = tuple(each for each in s.pending if each[0] != mine.entry)
        free = mine.but(entry=None, delivered=False)
        return s.but(pending=pending, workers=swap(s.workers, mine, free))

    def crashes(self, s: Receipt, worker: int) -> Receipt:
        """worker {worker} crashes"""
        return s.but(workers=swap(s.workers, named(s.workers, worker), Worker(worker)))

    def is_flushed(self, s: Receipt) -> Receipt:
        """Redis is flushed, and the group is made anew"""
        return s.but(log=(), pending=(), last_delivered=0, losses=s.losses + 1)

    def is_trimmed(self, s: Receipt, count: int) -> Receipt:
        """the log is trimmed of its first {count} entries"""
        return s.but(log=s.log[count:], losses=s.losses + 1)

    def ranges(self, s: Receipt) -> dict[str, Iterable[int]]:
        entries = range(1, s.appended + 1)
        return {"worker": (1, 2), "entry": entries, "count": range(1, len(s.log))}

    def is_complete(self, s: Receipt, me: None) -> bool:
        return not s.is_sent or (s.is_complete and not s.pending)

    def outcome_was_delivered(self, s: Receipt) -> bool:
        """What has an outcome, its receiver has."""
        return s.delivered or not s.outcome

    def has_outcome(self, s: Receipt) -> bool:
        """Every ride up to complete_to has an outcome."""
        return s.outcome or not s.is_complete

    start = Receipt()
    by_chance = (appends, crashes, is_flushed, is_trimmed)
    invariants: ClassVar = {"outcome": outcome_was_delivered, "complete_to": has_outcome}
