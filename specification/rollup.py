"""The rollup and its Ick, on a log that is right: a reader gets as far as `sent` (the core).

Ride n falls into minute n % 2. A minute's row says up to which ride it was computed. A lead that
was overtaken goes on until Postgres, or the Ick that is gone, refuses it.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from specification.explorer import System
from specification.states import Invariants, Step, Value, named, require, swap

Marks = tuple[tuple[int, int], ...]  # minute, lowest ride


class Ick(Value, frozen=True):
    name: int  # the generation
    produced: Marks = ()
    reserved: Marks = ()


class Lead(Value, frozen=True):
    """A leader's session: what it knows and has in hand."""

    name: int
    at: int
    marked: int = 0  # up to there, to be followed by the checkpoint
    reserved: Marks = ()
    computed: bool = False
    lowest: int | None = None  # as the Ick said, after `at` was reached


class Rows(Value, frozen=True):
    """In Postgres."""

    sent: int = 0
    complete_to: int = 0
    generation: int = 0
    rows: tuple[int, ...] = (0, 0)


class State(Value, frozen=True):
    db: Rows = Rows()
    backup: Rows | None = None
    leads: tuple[Lead, ...] = ()
    icks: tuple[Ick, ...] = ()
    begun: int = 0
    flushes: int = 0
    failovers: int = 0


class Rollup(System):
    """The rollup, with at most so many `rides` and `generations`."""

    def __init__(self, rides: int, generations: int, broken: str = "") -> None:
        self.rides, self.generations, self.broken = rides, generations, broken
        self.start = State()
        self.invariants: Invariants = {"8": minutes_are_right}

    def sends(self, s: State, ride: int) -> State:
        """the streamer sends ride {ride}"""
        require(ride > s.db.sent)
        return replace(s, db=replace(s.db, sent=ride))

    def draws(self, s: State, generation: int) -> State:
        """a leader deletes the Ick of before, and draws generation {generation}"""
        icks = tuple(ick for ick in s.icks if ick.name != s.db.generation)
        lead = Lead(generation, s.db.complete_to)
        db = replace(s.db, generation=generation)
        return replace(s, db=db, icks=icks, begun=generation, leads=(*s.leads[-1:], lead))

    def makes_its_ick(self, s: State, generation: int) -> State:
        """leader {generation} makes its Ick"""
        require(generation not in (ick.name for ick in s.icks))
        return replace(s, icks=(*s.icks, Ick(generation)))

    def marks(self, s: State, generation: int, upto: int) -> State:
        """leader {generation} marks the minutes of the rides up to {upto}"""
        mine = named(s.leads, generation)
        require(mine.at < upto <= s.db.sent and not mine.marked)
        ick = named(s.icks, generation)
        if self.broken == "older-generation" and generation > 1:
            ick = Ick(generation - 1)
        new = tuple((m, r) for r in range(mine.at + 1, upto + 1) for m in [r % 2])
        marked = replace(ick, produced=lowest_of(ick.produced + new))
        leads = swap(s.leads, mine, replace(mine, marked=upto))
        others = tuple(other for other in s.icks if other.name != ick.name)
        return replace(s, icks=(*others, marked), leads=leads)

    def moves(self, s: State, generation: int) -> State:
        """leader {generation} moves the checkpoint"""
        mine = named(s.leads, generation)
        require(mine.marked and s.db.generation == generation)
        moved = replace(mine, at=mine.marked, marked=0, lowest=None)
        return replace(s, leads=swap(s.leads, mine, moved))

    def reserves(self, s: State, generation: int) -> State:
        """leader {generation} reserves what is dirty"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        reserved = lowest_of(ick.reserved + ick.produced)
        icks = swap(s.icks, ick, replace(ick, produced=(), reserved=reserved))
        return replace(s, icks=icks, leads=swap(s.leads, mine, replace(mine, reserved=reserved)))

    def computes(self, s: State, generation: int) -> State:
        """leader {generation} computes the reserved minutes"""
        mine = named(s.leads, generation)
        require(mine.reserved and s.db.generation == generation)
        minutes = {minute for minute, _ in mine.reserved}
        rows = tuple(s.db.sent if m in minutes else row for m, row in enumerate(s.db.rows))
        leads = swap(s.leads, mine, replace(mine, computed=True))
        return replace(s, db=replace(s.db, rows=rows), leads=leads)

    def commits(self, s: State, generation: int) -> State:
        """leader {generation} commits them to its Ick"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        require(mine.computed)
        done = {minute for minute, _ in mine.reserved}
        left = tuple(mark for mark in ick.reserved if mark[0] not in done)
        icks = swap(s.icks, ick, replace(ick, reserved=left))
        leads = swap(s.leads, mine, replace(mine, reserved=(), computed=False))
        return replace(s, icks=icks, leads=leads)

    def asks_the_ick(self, s: State, generation: int) -> State:
        """leader {generation} asks its Ick for the lowest ride that is not rolled up"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        lowest = min((ride for _, ride in ick.produced + ick.reserved), default=mine.at + 1)
        return replace(s, leads=swap(s.leads, mine, replace(mine, lowest=lowest)))

    def completes(self, s: State, generation: int) -> State:
        """leader {generation} says that the minutes are complete up to there"""
        mine = named(s.leads, generation)
        require(mine.lowest and s.db.generation == generation)
        upto = max(s.db.complete_to, (mine.lowest or 0) - 1)
        leads = swap(s.leads, mine, replace(mine, lowest=None))
        return replace(s, db=replace(s.db, complete_to=upto), leads=leads)

    def ends(self, s: State, generation: int) -> State:
        """leader {generation} crashes, or finds that its lead is over"""
        return replace(s, leads=swap(s.leads, named(s.leads, generation)))

    def is_flushed(self, s: State) -> State:
        """Redis is flushed"""
        return replace(s, icks=(), flushes=s.flushes + 1)

    def is_backed_up(self, s: State) -> State:
        """to this moment Postgres will be set back"""
        return replace(s, backup=s.db)

    def fails_over(self, s: State) -> State:
        """Postgres fails over with loss"""
        require(s.backup is not None)
        return replace(s, db=s.backup, backup=None, leads=(), failovers=s.failovers + 1)

    def choices(self, s: State) -> Iterator[Step]:
        for lead in s.leads:
            yield from self.of_lead(s, lead)
            yield self.ends, (lead.name,)
        if s.db.sent < self.rides:
            yield self.sends, (s.db.sent + 1,)
        if s.begun < self.generations:
            yield self.draws, (s.begun + 1,)
        if s.icks and not s.flushes:
            yield self.is_flushed, ()
        if not s.failovers:
            yield self.is_backed_up if s.backup is None else self.fails_over, ()

    def progress(self, s: State) -> Iterator[Step]:
        for lead in s.leads:
            yield from self.of_lead(s, lead)
        if not s.leads:
            yield self.draws, (s.begun + 1,)

    def of_lead(self, s: State, mine: Lead) -> Iterator[Step]:
        """Postgres refuses a lead that was overtaken; its own Ick does so once it is deleted."""
        ick = next((ick for ick in s.icks if ick.name == mine.name), None)
        dirty = ick and (ick.produced or ick.reserved)
        if ick is None:
            fresh = mine == Lead(mine.name, s.db.complete_to)
            yield self.makes_its_ick if fresh else self.ends, (mine.name,)
        elif mine.computed:
            yield self.commits, (mine.name,)
        elif mine.reserved or mine.lowest or mine.marked:
            write = (
                self.computes if mine.reserved else self.completes if mine.lowest else self.moves
            )
            yield write if s.db.generation == mine.name else self.ends, (mine.name,)
        elif dirty:
            yield self.reserves, (mine.name,)
        elif mine.at > s.db.complete_to:
            yield self.asks_the_ick, (mine.name,)
        for upto in (
            range(s.db.sent, mine.at, -1) if ick and mine == Lead(mine.name, mine.at) else ()
        ):
            yield self.marks, (mine.name, upto)

    def is_complete(self, s: State) -> bool:
        return s.db.complete_to == s.db.sent


def lowest_of(marks: Marks) -> Marks:
    """Folded: each minute with its lowest ride."""
    return tuple((m, min(r for of, r in marks if of == m)) for m in sorted({m for m, _ in marks}))


def minutes_are_right(s: State) -> bool:
    """Each minute has been computed with all of its rides up to complete_to."""
    return all(s.db.rows[ride % 2] >= ride for ride in range(1, s.db.complete_to + 1))
