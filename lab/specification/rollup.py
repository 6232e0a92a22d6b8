"""The rollup, and the marks in its Ick, on a correct log."""

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import asdict, astuple

from lab.specification.explorer import Refused, System, Value, named, require, swap


class Ick(Value, frozen=True):
    name: int  # its generation
    produced: int = 0  # the lowest ride of the minute, or none
    reserved: int = 0


class Lead(Value, frozen=True):
    """A leader's session: what it knows, and what it has in flight."""

    name: int  # its generation
    at: int
    marked: int = 0  # marked up to this ride; the checkpoint follows
    reserved: bool = False
    computed: bool = False
    lowest: int = 0  # the lowest ride in the Ick, asked after `at`


class Rows(Value, frozen=True):
    """In Postgres."""

    sent: int = 0
    complete_to: int = 0
    generation: int = 0
    computed_to: int = 0  # the minute was computed from its rides up to this one


class Minute(Rows, frozen=True):
    backup: Rows | None = None
    leads: tuple[Lead, ...] = ()
    icks: tuple[Ick, ...] = ()
    begun: int = 0  # from here on: what has been used of the bounds
    flushes: int = 0
    failovers: int = 0


class Rollup(System):
    """One minute, which has all rides: other minutes behave alike.

    A leader that was overtaken goes on until Postgres refuses it, or its Ick is gone.
    """

    def sends(self, s: Minute) -> Minute:
        """the streamer sends the next ride"""
        return s.but(sent=s.sent + 1)

    def overtakes(self, s: Minute, new: int) -> Minute:
        """another leader deletes the former Ick, and draws generation {new}"""
        icks = tuple(ick for ick in s.icks if ick.name != s.generation)
        leads = (*s.leads[-1:], Lead(new, s.complete_to))
        return s.but(generation=new, icks=icks, begun=new, leads=leads)

    def draws(self, s: Minute, new: int) -> Minute:
        """a leader deletes the former Ick, and draws generation {new}"""
        fresh, icks = Lead(s.generation, s.complete_to), {ick.name for ick in s.icks}
        leading = [mine for mine in s.leads if mine.name == s.generation]
        require(not any(mine == fresh or mine.name in icks for mine in leading))
        return self.overtakes(s, new)

    def makes_its_ick(self, s: Minute, generation: int) -> Minute:
        """leader {generation} makes its Ick"""
        require(named(s.leads, generation) == Lead(generation, s.complete_to))
        require(generation not in {ick.name for ick in s.icks})
        return s.but(icks=(*s.icks, Ick(generation)))

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

    def asks_the_ick(self, s: Minute, generation: int) -> Minute:
        """leader {generation} asks its Ick for the lowest ride that is not rolled up"""
        mine, ick = named(s.leads, generation), named(s.icks, generation)
        require(mine == Lead(generation, mine.at) and mine.at > s.complete_to)
        lowest = lowest_of(ick.produced, ick.reserved) or mine.at + 1
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
        return s.but(icks=(), flushes=s.flushes + 1)

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


def lowest_of(*rides: int) -> int:
    return min(filter(None, rides), default=0)
