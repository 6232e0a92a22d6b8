"""The rollup, and the marks in its dirty set, on a correct log."""

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import asdict, astuple

from lab.specification.explorer import Refused, System, Value, named, require, swap


class DirtySet(Value, frozen=True):
    """One that has the minute: Redis has no empty sets."""

    name: int  # its generation
    lowest: int  # ride of the minute


class Lead(Value, frozen=True):
    """A leader's session: what it knows, and what it has in flight."""

    name: int  # its generation
    at: int
    count: int = 0  # of minutes that must be in its dirty set
    marked: int = 0  # marked up to this ride; the checkpoint follows
    computed: bool = False
    lowest: int = 0  # the lowest ride in the dirty set, asked after `at`


class Rows(Value, frozen=True):
    """What Postgres holds."""

    sent: int = 0
    complete_to: int = 0
    generation: int = 0
    computed_to: int = 0  # the minute was computed from its rides up to this one


class Minute(Rows, frozen=True):
    backup: Rows | None = None
    leads: tuple[Lead, ...] = ()
    dirty_sets: tuple[DirtySet, ...] = ()
    begun: int = 0  # from here on: what has been used of the bounds
    flushes: int = 0
    failovers: int = 0


class Rollup(System):
    """One minute, which has all rides: other minutes behave alike.

    A leader that was overtaken goes on until Postgres refuses it, or what it has marked is gone.
    """

    def sends(self, s: Minute) -> Minute:
        """the streamer sends the next ride"""
        return s.but(sent=s.sent + 1)

    def overtakes(self, s: Minute, new: int) -> Minute:
        """another leader deletes the former dirty set, and draws generation {new}"""
        leads = (*s.leads[-1:], Lead(new, s.complete_to))
        return s.but(generation=new, dirty_sets=without(s, s.generation), begun=new, leads=leads)

    def draws(self, s: Minute, new: int) -> Minute:
        """a leader deletes the former dirty set, and draws generation {new}"""
        leading = [mine for mine in s.leads if mine.name == s.generation]
        require(not any(has_all(s, mine) for mine in leading))
        return self.overtakes(s, new)

    def marks(self, s: Minute, generation: int, upto: int) -> Minute:
        """leader {generation} marks the minutes of the rides up to {upto}"""
        mine, into = named(s.leads, generation), generation
        require(mine == between(mine) and mine.at < upto)
        if self.broken == "older-generation" and generation > 1:
            into = generation - 1
        before, others = lowest_in(s, into), without(s, into)
        marked = DirtySet(into, before or mine.at + 1)
        count = mine.count + (into == generation and not before)
        leads = swap(s.leads, mine, mine.but(marked=upto, count=count))
        return s.but(dirty_sets=(*others, marked), leads=leads)

    def moves(self, s: Minute, generation: int) -> Minute:
        """leader {generation} moves the checkpoint"""
        mine = named(s.leads, generation)
        require(mine.marked and s.generation == generation)
        return s.but(leads=swap(s.leads, mine, Lead(generation, mine.marked, mine.count)))

    def computes(self, s: Minute, generation: int) -> Minute:
        """leader {generation} computes what is dirty"""
        mine = named(s.leads, generation)
        require(mine == between(mine) and lowest_in(s, generation) and s.generation == generation)
        return s.but(computed_to=s.sent, leads=swap(s.leads, mine, mine.but(computed=True)))

    def removes(self, s: Minute, generation: int) -> Minute:
        """leader {generation} takes that out of its dirty set"""
        mine = named(s.leads, generation)
        require(mine.computed)
        count = mine.count - bool(lowest_in(s, generation))
        leads = swap(s.leads, mine, Lead(generation, mine.at, count))
        return s.but(dirty_sets=without(s, generation), leads=leads)

    def asks_the_dirty_set(self, s: Minute, generation: int) -> Minute:
        """leader {generation} asks its dirty set for the lowest ride that is not rolled up"""
        mine = named(s.leads, generation)
        require(mine == between(mine) and mine.at > s.complete_to and has_all(s, mine))
        lowest = lowest_in(s, generation) or mine.at + 1
        return s.but(leads=swap(s.leads, mine, mine.but(lowest=lowest)))

    def completes(self, s: Minute, generation: int) -> Minute:
        """leader {generation} moves complete_to to the ride before that"""
        mine = named(s.leads, generation)
        require(mine.lowest and s.generation == generation)
        leads = swap(s.leads, mine, mine.but(lowest=0))
        return s.but(complete_to=max(s.complete_to, mine.lowest - 1), leads=leads)

    def crashes(self, s: Minute, generation: int) -> Minute:
        """leader {generation} crashes, or finds that its lead is over"""
        return s.but(leads=swap(s.leads, named(s.leads, generation)))

    def is_flushed(self, s: Minute) -> Minute:
        """Redis is flushed"""
        return s.but(dirty_sets=(), flushes=s.flushes + 1)

    def is_backed_up(self, s: Minute) -> Minute:
        """Postgres is backed up: a fail-over will set it back to this moment"""
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

    def is_complete(self, s: Minute) -> bool:
        return s.complete_to == s.sent

    def minute_is_right(self, s: Minute) -> bool:
        """The minute was computed from all of its rides up to complete_to."""
        return s.computed_to >= s.complete_to

    start = Minute()
    by_chance = (sends, overtakes, crashes, is_flushed, is_backed_up)
    invariants: ClassVar = {"8": minute_is_right}


def between(lead: Lead) -> Lead:
    """The leader with nothing in flight."""
    return Lead(lead.name, lead.at, lead.count)


def lowest_in(s: Minute, generation: int) -> int:
    """The lowest ride in the dirty set of that generation; 0 if there is none."""
    return next((each.lowest for each in s.dirty_sets if each.name == generation), 0)


def without(s: Minute, generation: int) -> tuple[DirtySet, ...]:
    return tuple(each for each in s.dirty_sets if each.name != generation)


def has_all(s: Minute, lead: Lead) -> bool:
    """Whether a leader's dirty set has what it must."""
    return bool(lowest_in(s, lead.name)) == lead.count
