"""The rollup: a marker and an indexer, and the Ick between them, on a correct log."""

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import asdict, astuple

from lab.specification.explorer import System, Value, named, require, swap
from lab.specification.ick import EMPTY, Ick, Set, add, members, put, remove

MINUTES = range(len(EMPTY))
NOTHING = 99  # is dirty: above every ride


class Lead(Value, frozen=True):
    """A leader: what its marker and its indexer know, and what they have in flight."""

    name: int  # its generation
    at: int  # the checkpoint
    expected: tuple[int, ...] = (0, 0, 0)  # of its Ick, by both: see `Ick.measured`
    marked: int = 0  # marked up to this ride; the checkpoint follows
    reserved: tuple[int, ...] = ()  # minutes that the indexer works on
    is_computed: bool = False  # what is reserved
    upto: int = 0  # `at`, as the indexer has read it
    lowest: int = 0  # the lowest ride in the Ick, asked after `upto` was read


class Rows(Value, frozen=True):
    rides: tuple[int, ...] = ()  # the minute of each that was sent
    complete_to: int = 0
    generation: int = 0
    computed: Set = EMPTY  # each minute was computed from its rides up to this one
    wanted: tuple[int, ...] = ()  # the minute that a reconciliation wants computed anew


class Minutes(Rows, frozen=True):
    backup: Rows | None = None
    leads: tuple[Lead, ...] = ()
    icks: tuple[Ick, ...] = ()
    copy: Ick | None = None
    is_deleted: bool = False  # this generation's Ick, by a leader that is about to draw the next
    begun: int = 0  # from here on: what has been used of the bounds
    losses: int = 0
    failovers: int = 0
    requests: int = 0

    @property
    def sent(self) -> int:
        return len(self.rides)

    @property
    def superseded(self) -> int:
        """Leaders that go on although another generation has begun."""
        return max(len(self.leads) - 1, 0)


class Rollup(System):
    """Two minutes: others behave as they do.

    A leader that was superseded goes on until Postgres refuses it, or its Ick is not as expected.
    To compute and to commit come before to reserve, since a step is the more urgent the earlier it
    is defined, and an indexer that always reserved anew would never be done.
    """

    def sends(self, s: Minutes, minute: int) -> Minutes:
        """the streamer sends the next ride, in minute {minute}"""
        require(s.rides or minute == 0)  # until then both are alike
        return s.but(rides=(*s.rides, minute))

    def overtakes(self, s: Minutes) -> Minutes:
        """another leader deletes the former Ick"""
        require(not s.is_deleted)
        return s.but(icks=without(s, s.generation), is_deleted=True)

    def ends(self, s: Minutes, lead: Lead) -> Minutes:
        """leader {lead} finds that its lead is over"""
        require(self.is_over(s, lead))
        return s.but(leads=swap(s.leads, lead))

    def deletes(self, s: Minutes) -> Minutes:
        """a leader deletes the former Ick"""
        require(all(mine.name != s.generation for mine in s.leads))
        return self.overtakes(s)

    def draws(self, s: Minutes, new: int) -> Minutes:
        """and draws generation {new}"""
        require(s.is_deleted)
        at = s.complete_to
        if self.broken == "checkpoint-not-set-back":
            at = max([at, *(lead.at for lead in s.leads)])
        leads = (*s.leads[-1:], Lead(new, at))
        return s.but(generation=new, begun=new, leads=leads, is_deleted=False)

    def marks(self, s: Minutes, lead: Lead, upto: int) -> Minutes:
        """marker {lead} adds the minutes of the rides up to {upto}"""
        require(not lead.marked and lead.at < upto)
        ick, marked = self.ick_of(s, lead), lead.but(marked=upto)
        pset = ick.pset
        for ride in range(lead.at + 1, upto + 1):
            pset = add(pset, s.rides[ride - 1], ride)
        if self.broken == "older-generation" and lead.name > 1:
            icks = (*without(s, lead.name - 1), Ick(lead.name - 1, 1, pset))
            return s.but(icks=icks, leads=swap(s.leads, lead, marked))
        return written(s, marked, ick.but(pset=pset))

    def moves(self, s: Minutes, lead: Lead) -> Minutes:
        """marker {lead} moves the checkpoint"""
        require(lead.marked and s.generation == lead.name)
        return s.but(leads=swap(s.leads, lead, lead.but(at=lead.marked, marked=0)))

    def marks_again(self, s: Minutes, lead: Lead) -> Minutes:
        """indexer {lead} adds the minute that is wanted"""
        require(s.wanted and not lead.reserved and not lead.upto)
        ick, [minute] = self.ick_of(s, lead), s.wanted
        pset = add(ick.pset, minute, 1 + s.rides.index(minute))
        require(pset != ick.pset)
        return written(s, lead, ick.but(pset=pset))

    def computes(self, s: Minutes, lead: Lead) -> Minutes:
        """indexer {lead} computes what it has reserved"""
        require(lead.reserved and not lead.is_computed and not lead.upto)
        require(s.generation == lead.name)
        computed = s.computed
        for minute in lead.reserved:
            computed = put(computed, minute, s.sent)
        wanted = tuple(minute for minute in s.wanted if minute not in lead.reserved)
        leads = swap(s.leads, lead, lead.but(is_computed=True))
        return s.but(computed=computed, wanted=wanted, leads=leads)

    def commits(self, s: Minutes, lead: Lead) -> Minutes:
        """indexer {lead} commits what it has computed"""
        require(lead.is_computed)
        ick = self.ick_of(s, lead)
        after = ick.but(cset=remove(ick.cset, lead.reserved))
        if self.broken == "commits-new-marks":
            after = after.but(pset=remove(ick.pset, lead.reserved))
        return written(s, lead.but(reserved=(), is_computed=False), after)

    def reserves(self, s: Minutes, lead: Lead, most: int) -> Minutes:
        """indexer {lead} reserves, up to {most} in all"""
        require(not lead.upto)
        ick = self.ick_of(s, lead)
        after = ick.reserve(most)
        reserved = tuple(members(after.cset)[:most])
        # Anew, before the others are committed: when they could not be computed.
        is_smaller = len(reserved) < len(lead.reserved)
        require(after != ick or is_smaller or (reserved and not lead.reserved))
        is_computed = lead.is_computed and self.broken == "reserved-anew"
        return written(s, lead.but(reserved=reserved, is_computed=is_computed), after)

    def reads_marked_upto(self, s: Minutes, lead: Lead) -> Minutes:
        """indexer {lead} reads where the checkpoint is"""
        require(lead.at > s.complete_to and not lead.upto and not lead.is_computed)
        require(lead.lowest or self.broken != "marked-upto-last")
        return s.but(leads=swap(s.leads, lead, lead.but(upto=lead.at)))

    def asks_the_ick(self, s: Minutes, lead: Lead) -> Minutes:
        """indexer {lead} asks its Ick for the lowest ride that is not rolled up"""
        require(lead.upto or self.broken == "marked-upto-last")
        require(not lead.lowest and not lead.is_computed)
        ick = self.ick_of(s, lead)
        dirty = ick.pset if self.broken == "producer-set-alone" else ick.pset + ick.cset
        lowest = min(filter(None, dirty), default=NOTHING)
        return s.but(leads=swap(s.leads, lead, lead.but(lowest=lowest)))

    def completes(self, s: Minutes, lead: Lead) -> Minutes:
        """indexer {lead} moves complete_to as far as both allow"""
        require(lead.upto and lead.lowest and s.generation == lead.name)
        leads = swap(s.leads, lead, lead.but(upto=0, lowest=0))
        return s.but(complete_to=max(s.complete_to, min(lead.upto, lead.lowest - 1)), leads=leads)

    def crashes(self, s: Minutes, lead: Lead) -> Minutes:
        """leader {lead} crashes"""
        require(not self.is_over(s, lead))  # or it `ends`
        return s.but(leads=swap(s.leads, lead))

    def is_wanted(self, s: Minutes, minute: int) -> Minutes:
        """minute {minute} is found wrong: a reconciliation wants it computed anew"""
        require(s.computed[minute] and minute in s.rides and not s.wanted)
        computed = put(s.computed, minute, 0)
        return s.but(computed=computed, wanted=(minute,), requests=s.requests + 1)

    def is_flushed(self, s: Minutes) -> Minutes:
        """Redis is flushed"""
        require(s.icks)
        return s.but(icks=(), losses=s.losses + 1)

    def evicts(self, s: Minutes, which: str) -> Minutes:
        """Redis evicts the {which}, and nothing else"""
        ick = ick_named(s, s.generation)
        after = ick.but(**{which: EMPTY})
        require(after != ick)
        return s.but(icks=(*without(s, ick.name), after), losses=s.losses + 1)

    def is_copied(self, s: Minutes) -> Minutes:
        """Redis' disk or replica has this state: Redis will be set back to it"""
        ick = ick_named(s, s.generation)
        require(s.copy is None and ick.writes)
        return s.but(copy=ick, losses=s.losses + 1)

    def is_backed_up(self, s: Minutes) -> Minutes:
        """Postgres is backed up: a fail-over will set it back to this moment"""
        require(s.backup is None)
        return s.but(backup=Rows(*astuple(s)[:5]), failovers=s.failovers + 1)

    def is_set_back(self, s: Minutes) -> Minutes:
        """Redis is set back"""
        copy = require(s.copy)
        return s.but(icks=(*without(s, copy.name), copy), copy=None)

    def fails_over(self, s: Minutes) -> Minutes:
        """Postgres fails over with loss"""
        return s.but(**asdict(require(s.backup)), backup=None, leads=(), is_deleted=False)

    def ranges(self, s: Minutes) -> dict[str, Iterable[object]]:
        return {
            "lead": s.leads,
            "new": [s.begun + 1],
            "upto": range(s.sent, 0, -1),
            "minute": MINUTES,
            "most": range(len(set(s.rides)), 0, -1),
            "which": ("pset", "cset"),
        }

    def is_complete(self, s: Minutes) -> bool:
        return s.complete_to == s.sent and not s.wanted

    def minutes_are_right(self, s: Minutes) -> bool:
        """Each was computed from all of its rides up to complete_to, or is to be computed anew."""
        rides = enumerate(s.rides[: s.complete_to], 1)
        return all(s.computed[minute] >= ride or minute in s.wanted for ride, minute in rides)

    def ick_of(self, s: Minutes, mine: Lead) -> Ick:
        """The leader's Ick: each operation is refused where it is not as the leader expects it."""
        require(self.is_expected(s, mine))
        return ick_named(s, mine.name)

    def is_expected(self, s: Minutes, mine: Lead) -> bool:
        found, expected = ick_named(s, mine.name).measured(), mine.expected
        if self.broken == "writes-not-counted":
            return found[1:] == expected[1:]
        if self.broken == "sizes-not-compared":
            return found[0] == expected[0]
        return found == expected

    def is_over(self, s: Minutes, mine: Lead) -> bool:
        """Whether Postgres or the Ick refuses what the leader does next."""
        return s.generation != mine.name or not self.is_expected(s, mine)

    start = Minutes()
    by_chance = (
        *(sends, overtakes, crashes, is_wanted),
        *(is_flushed, evicts, is_copied, is_backed_up),
    )
    spends: ClassVar = {
        sends: "sent", is_wanted: "requests", is_backed_up: "failovers",
        is_flushed: "losses", evicts: "losses", is_copied: "losses",
    }  # fmt: skip
    invariants: ClassVar = {"8": minutes_are_right}


def ick_named(s: Minutes, name: int) -> Ick:
    return next((ick for ick in s.icks if ick.name == name), Ick(name))


def without(s: Minutes, name: int) -> tuple[Ick, ...]:
    return tuple(ick for ick in s.icks if ick.name != name)


def written(s: Minutes, mine: Lead, ick: Ick) -> Minutes:
    """One of the leader's loops has written this to its Ick, and knows what `mine` says."""
    # A count is only compared with the copy's. One that goes on rising would make more states.
    copied = s.copy.writes if s.copy and s.copy.name == ick.name else 0
    ick = ick.but(writes=copied + 1)
    leads = swap(s.leads, named(s.leads, mine.name), mine.but(expected=ick.measured()))
    return s.but(icks=(*without(s, ick.name), ick), leads=leads)
