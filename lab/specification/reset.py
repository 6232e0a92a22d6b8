"""The reset of a total, which either of two processes of one name applies, on a right log."""

from collections.abc import Iterable
from typing import ClassVar

from lab.specification.explorer import System, Value, named, require, swap


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
