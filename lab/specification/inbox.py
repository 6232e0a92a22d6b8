"""The inbox of receipts: each ride gets a row, from the log or by the sweep; `complete_to` follows.

The log is correct, as the core shows; a ride that was committed below `last_sent` is not in it. A
worker that has read an entry can crash before each of its steps. What happens to a row is modelled
in `queue`: here a row is open, then decided for good.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from lab.specification.explorer import System, Value, named, require, swap


class Receipt(Value, frozen=True):
    """A committed ride: its entry in the log, and its row of `receipts`."""

    name: int
    entry: str = ""  # in the log; read, inserted or acknowledged by a worker; or lost
    has_row: bool = False
    is_decided: bool = False


class Look(Value, frozen=True):
    """The snapshot of a statement that has not written yet."""

    upto: int
    set_backs: int
    lacking: tuple[int, ...] = ()  # the rides without a row


class Receipts(Value, frozen=True):
    rides: tuple[Receipt, ...] = ()
    last_sent: int = 0
    inbox_to: int = 0
    complete_to: int = 0
    sweep: Look | None = None
    completion: Look | None = None
    drawn: int = 0  # from here on: what has been used of the bounds
    flushes: int = 0
    set_backs: int = 0

    @property
    def appended(self) -> int:
        return max((ride.name for ride in self.rides if ride.entry), default=0)

    def changed(self, ride: Receipt, **to: Any) -> "Receipts":
        return self.but(rides=swap(self.rides, ride, ride.but(**to)))


class Inbox(System):
    def commits(self, s: Receipts, new: int) -> Receipts:
        """ride {new} is committed"""
        require(new > s.appended)
        return s.but(rides=tuple(sorted((*s.rides, Receipt(new)))), drawn=max(s.drawn, new))

    def appends(self, s: Receipts, ride: Receipt) -> Receipts:
        """the streamer appends ride {ride} to the log"""
        require(ride == min((it for it in s.rides if it.name > s.appended), default=None))
        return s.changed(ride, entry="logged")

    def moves_last_sent(self, s: Receipts) -> Receipts:
        """the streamer moves last_sent to the end of the log"""
        require(s.appended > s.last_sent)
        return s.but(last_sent=s.appended)

    def repairs_below(self, s: Receipts, new: int) -> Receipts:
        """ride {new} is committed late, below last_sent, and repaired: all is set back below it"""
        require(new < s.last_sent)
        inbox_to, complete_to = min(s.inbox_to, new - 1), min(s.complete_to, new - 1)
        back = s.but(inbox_to=inbox_to, complete_to=complete_to, set_backs=s.set_backs + 1)
        return back.but(rides=tuple(sorted((*s.rides, Receipt(new, "lost")))))

    def reads(self, s: Receipts, ride: Receipt) -> Receipts:
        """a worker reads the entry of ride {ride}, or claims it"""
        require(ride.entry == "logged")
        return s.changed(ride, entry="read")

    def inserts(self, s: Receipts, ride: Receipt) -> Receipts:
        """the worker inserts the row of ride {ride}, unless it is there"""
        require(ride.entry == "read")
        has_row = ride.has_row or self.broken != "waits-for-last-sent" or ride.name <= s.last_sent
        return s.changed(ride, entry="inserted", has_row=has_row)

    def acknowledges(self, s: Receipts, ride: Receipt) -> Receipts:
        """the worker acknowledges the entry of ride {ride}"""
        require(ride.entry == ("inserted" if self.broken != "acknowledged-first" else "read"))
        return s.changed(ride, entry="acknowledged")

    def decides(self, s: Receipts, ride: Receipt) -> Receipts:
        """the receipt of ride {ride} is delivered, or a dead letter"""
        require(ride.has_row and not ride.is_decided and ride.name <= s.last_sent)
        return s.changed(ride, is_decided=True)

    def looks_for_lost(self, s: Receipts, upto: int) -> Receipts:
        """a sweep looks for rides up to {upto} without a row"""
        require(s.sweep is None and s.inbox_to < upto)
        lacking = (ride.name for ride in s.rides if ride.name <= upto and not ride.has_row)
        return s.but(sweep=Look(upto, s.set_backs, tuple(lacking)))

    def sweeps(self, s: Receipts) -> Receipts:
        """the sweep inserts their rows and moves inbox_to, if there was no repair"""
        look, s = require(s.sweep), s.but(sweep=None)
        if look.set_backs != s.set_backs and self.broken != "sweep-regardless":
            return s
        for ride in look.lacking:
            s = s.changed(named(s.rides, ride), has_row=True)
        return s.but(inbox_to=max(s.inbox_to, look.upto))

    def looks_for_open(self, s: Receipts) -> Receipts:
        """a worker looks for the first row up to inbox_to that has no outcome"""
        most = s.inbox_to if self.broken != "outcomes-alone" else s.last_sent
        undecided = (ride.name - 1 for ride in s.rides if ride.has_row and not ride.is_decided)
        upto = min((most, *undecided))
        require(s.completion is None and s.complete_to < upto)
        return s.but(completion=Look(upto, s.set_backs))

    def completes(self, s: Receipts) -> Receipts:
        """the worker moves complete_to to just before it, if there was no repair"""
        look, s = require(s.completion), s.but(completion=None)
        if look.set_backs != s.set_backs and self.broken != "complete-regardless":
            return s
        return s.but(complete_to=max(s.complete_to, look.upto))

    def forgets(self, s: Receipts, ride: Receipt) -> Receipts:
        """the worker that has read the entry of ride {ride} crashes"""
        require(ride.entry in {"read", "inserted"})
        return s.changed(ride, entry="logged")

    def is_flushed(self, s: Receipts) -> Receipts:
        """Redis is flushed"""
        rides = (it.but(entry="lost") if it.entry == "logged" else it for it in s.rides)
        return s.but(rides=tuple(rides), flushes=s.flushes + 1)

    def ranges(self, s: Receipts) -> dict[str, Iterable[object]]:
        return {
            "new": set(range(1, s.drawn + 3)).difference(ride.name for ride in s.rides),
            "ride": s.rides,
            "upto": range(s.last_sent, 0, -1),  # last_sent, as read before
        }

    def is_complete(self, s: Receipts) -> bool:
        newest = max((ride.name for ride in s.rides), default=0)
        return newest <= s.last_sent == s.complete_to

    # What must hold.

    def has_them(self, s: Receipts) -> bool:
        """A ride has its row once its entry is acknowledged, or inbox_to is past it."""
        seen = (it for it in s.rides if it.entry == "acknowledged" or it.name <= s.inbox_to)
        return all(ride.has_row for ride in seen)

    def complete_is_decided(self, s: Receipts) -> bool:
        """Each ride up to complete_to has an outcome."""
        return all(ride.is_decided for ride in s.rides if ride.name <= s.complete_to)

    start = Receipts()
    by_chance = (commits, repairs_below, forgets, is_flushed)
    invariants: ClassVar = {"15, inbox": has_them, "15, complete_to": complete_is_decided}
