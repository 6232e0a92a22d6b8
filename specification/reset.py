"""A reset: a wrong total is noticed by a run that adds up the rides, and repaired by its consumer.

On a log that is right: ride n, of distance 4^n, counts once `sent` has reached it (the core). Two
processes run under one name. All of it is in one database, and a run ends with its connection, so
a fail-over brings back an earlier state of the whole, and nothing new.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from specification.explorer import System
from specification.states import Invariants, Step, Value, require, with_


class State(Value, frozen=True):
    sent: int = 0
    at: int = 0  # the checkpoint
    total: int = 0
    known: tuple[int | None, ...] = (None, None)  # the checkpoint, as each process read it
    frozen: tuple[int, bool] | None = None  # by the run: up to which ride; whether it was wrong
    pending: int | None = None  # a reset to the sum up to this ride
    spoilt: int = 0
    runs: int = 0
    applied: int = 0


class Reset(System):
    """One consumer, at most so many `rides` and `runs`, and one wrong total."""

    def __init__(self, rides: int, runs: int, broken: str = "") -> None:
        self.rides, self.runs, self.broken = rides, runs, broken
        self.start = State()
        self.invariants: Invariants = {"12": is_right_or_spoilt, "11": is_settled}

    def sends(self, s: State) -> State:
        """the streamer sends the next ride"""
        return replace(s, sent=s.sent + 1)

    def loads(self, s: State, process: int) -> State:
        """process {process} loads the checkpoint, and reads from there"""
        return replace(s, known=with_(s.known, process, s.at))

    def counts(self, s: State, process: int, upto: int) -> State:
        """process {process} counts up to ride {upto}"""
        require(s.known[process] == s.at < upto <= s.sent)
        total = s.total + exact(upto) - exact(s.at)
        return replace(s, at=upto, total=total, known=with_(s.known, process, upto))

    def forgets(self, s: State, process: int) -> State:
        """process {process} crashes, or finds that the checkpoint was moved"""
        return replace(s, known=with_(s.known, process, None))

    def is_spoilt(self, s: State) -> State:
        """somebody makes the total wrong"""
        return replace(s, total=s.total + 1, spoilt=s.spoilt + 1)

    def freezes(self, s: State) -> State:
        """a reconciliation looks at last_sent and at the total"""
        return replace(s, frozen=(s.sent, s.total != exact(s.at)), runs=s.runs + 1)

    def emits(self, s: State) -> State:
        """the reconciliation asks for a reset if the total was wrong"""
        require(s.frozen is not None)
        upto, wrong = s.frozen or (0, False)
        return replace(s, frozen=None, pending=upto if wrong else s.pending)

    def applies(self, s: State, process: int) -> State:
        """process {process} locks the checkpoint, finds the reset pending, and applies it"""
        require(s.pending is not None)
        to = min(s.sent, max(s.pending or 0, s.at))
        known = with_(s.known, process, to)
        return replace(s, at=to, total=exact(to), pending=None, applied=s.applied + 1, known=known)

    def choices(self, s: State) -> Iterator[Step]:
        for process in range(2):
            yield from self.of_process(s, process)
            if s.known[process] is not None:
                yield self.forgets, (process,)
        if s.sent < self.rides:
            yield self.sends, ()
        if not s.spoilt:
            yield self.is_spoilt, ()
        if s.frozen:
            yield self.emits, ()
        elif s.runs < self.runs:
            yield self.freezes, ()

    def of_process(self, s: State, process: int) -> Iterator[Step]:
        known = s.known[process]
        if known is None:
            yield self.loads, (process,)
        elif s.pending is not None:
            yield self.applies, (process,)
        elif known != s.at:
            yield self.forgets, (process,)
        else:
            for upto in range(s.sent, s.at, -1):
                yield self.counts, (process, upto)

    def progress(self, s: State) -> Iterator[Step]:
        for process in range(2):
            yield from self.of_process(s, process)
        if s.frozen:
            yield self.emits, ()
        elif s.total != exact(s.at):
            yield self.freezes, ()

    def is_complete(self, s: State) -> bool:
        return s.at == s.sent and s.total == exact(s.at)


def exact(upto: int) -> int:
    return sum(4**ride for ride in range(1, upto + 1))


def is_right_or_spoilt(s: State) -> bool:
    """The total is right, or wrong by what was done to it, which a reset takes away for good."""
    return s.total - exact(s.at) in {0, int(s.spoilt)}


def is_settled(s: State) -> bool:
    return s.at <= s.sent
