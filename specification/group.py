"""Receipts: a consumer group that two workers share, and the sweep for what the log has lost.

On entries that are true (the core): ride n may be in the log before it is committed, and more than
once. A worker that crashes leaves its entries pending; the other one claims them.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from specification.explorer import System
from specification.states import Invariants, Step, Value, given, require, with_

Hand = tuple[tuple[int, int, bool], ...]  # ride, entry (0: swept), whether it was delivered
Entries = tuple[tuple[int, int], ...]  # redis_id, ride


class Sweep(Value, frozen=True):
    """What the sweep has seen: first how far all was read, then what is pending."""

    upto: int
    pending: frozenset[int] | None = None


class State(Value, frozen=True):
    sent: int = 0
    outcomes: frozenset[int] = frozenset()
    complete_to: int = 0
    delivered: frozenset[int] = frozenset()  # as the receiver knows
    log: Entries = ()
    appended: int = 0
    last_delivered: int = 0
    pending: tuple[tuple[int, int, int], ...] = ()  # redis_id, ride, worker
    hands: tuple[Hand, ...] = ((), ())
    sweeps: tuple[Sweep | None, ...] = (None, None)
    losses: int = 0


class Group(System):
    """Two workers, at most so many `rides` and `entries`, and one loss."""

    def __init__(self, rides: int, entries: int, broken: str = "") -> None:
        self.rides, self.entries, self.broken = rides, entries, broken
        self.start = State()
        self.invariants: Invariants = {
            "outcome": outcomes_were_delivered,
            "complete_to": all_have_outcomes,
        }

    def appends(self, s: State, ride: int) -> State:
        """the streamer appends ride {ride}"""
        at = s.appended + 1
        return replace(s, log=(*s.log, (at, ride)), appended=at)

    def commits(self, s: State, ride: int) -> State:
        """the streamer commits ride {ride}"""
        require(ride > s.sent)
        return replace(s, sent=ride)

    def reads(self, s: State, worker: int) -> State:
        """worker {worker} is given the next entry"""
        at, ride = next(entry for entry in s.log if entry[0] > s.last_delivered)
        return replace(s, last_delivered=at, pending=(*s.pending, (at, ride, worker)))

    def takes_up(self, s: State, worker: int, entry: int) -> State:
        """worker {worker} takes up entry {entry}, whose ride was committed"""
        ride = next(ride for at, ride, _ in s.pending if at == entry)
        require(ride <= s.sent)
        return self.with_hand(s, worker, (*s.hands[worker], (ride, entry, False)))

    def delivers(self, s: State, worker: int, ride: int) -> State:
        """worker {worker} delivers the receipt of ride {ride}"""
        hand = tuple((r, at, done or r == ride) for r, at, done in s.hands[worker])
        return self.with_hand(replace(s, delivered=s.delivered | {ride}), worker, hand)

    def saves(self, s: State, worker: int, ride: int) -> State:
        """worker {worker} writes the outcome of ride {ride}"""
        require(any(r == ride and done for r, _, done in s.hands[worker]))
        return replace(s, outcomes=s.outcomes | {ride})

    def acknowledges(self, s: State, worker: int, ride: int) -> State:
        """worker {worker} acknowledges ride {ride}, which has its outcome"""
        require(ride in s.outcomes)
        entries = {at for r, at, _ in s.hands[worker] if r == ride}
        pending = tuple(p for p in s.pending if p[0] not in entries)
        hand = tuple(taken for taken in s.hands[worker] if taken[0] != ride)
        return self.with_hand(replace(s, pending=pending), worker, hand)

    def claims(self, s: State, worker: int, entry: int) -> State:
        """worker {worker} claims entry {entry} of the other, or acknowledges that it is gone"""
        there = {at for at, _ in s.log}
        claimed = ((at, r, worker if at == entry else who) for at, r, who in s.pending)
        return replace(s, pending=tuple(p for p in claimed if p[0] != entry or entry in there))

    def crashes(self, s: State, worker: int) -> State:
        """worker {worker} crashes"""
        return self.with_hand(self.with_sweep(s, worker, None), worker, ())

    def sweep_looks_at_unread(self, s: State, worker: int) -> State:
        """worker {worker} sweeps: reads last_sent, then the first unread entry"""
        require(not any(s.sweeps))
        unread = [ride for at, ride in s.log if at > s.last_delivered]
        return self.with_sweep(s, worker, Sweep(min([s.sent, *(ride - 1 for ride in unread[:1])])))

    def sweep_looks_at_pending(self, s: State, worker: int) -> State:
        """worker {worker} sweeps: reads what is pending"""
        mine = given(s.sweeps[worker])
        require(mine.pending is None)
        pending = frozenset(ride for _, ride, _ in s.pending)
        return self.with_sweep(s, worker, replace(mine, pending=pending))

    def sweep_takes_up(self, s: State, worker: int) -> State:
        """worker {worker} sweeps: takes up rides without an outcome, and moves complete_to"""
        mine = given(s.sweeps[worker])
        seen = given(mine.pending)
        lacking = [r for r in range(s.complete_to + 1, mine.upto + 1) if r not in s.outcomes]
        held = {ride for ride, _, _ in s.hands[worker]} | seen
        lost = tuple((ride, 0, False) for ride in lacking if ride not in held)
        complete_to = max(s.complete_to, min([mine.upto, *(ride - 1 for ride in lacking[:1])]))
        swept = self.with_hand(s, worker, s.hands[worker] + lost)
        return self.with_sweep(replace(swept, complete_to=complete_to), worker, None)

    def is_flushed(self, s: State) -> State:
        """Redis is flushed, and the group is made anew"""
        return replace(s, log=(), pending=(), last_delivered=0, losses=s.losses + 1)

    def is_trimmed(self, s: State, count: int) -> State:
        """the log is trimmed of its first {count} entries"""
        return replace(s, log=s.log[count:], losses=s.losses + 1)

    def choices(self, s: State) -> Iterator[Step]:
        for worker in range(2):
            yield from self.of_worker(s, worker)
            yield from self.of_sweep(s, worker)
            if s.hands[worker] or s.sweeps[worker]:
                yield self.crashes, (worker,)
        if s.appended < self.entries:
            for ride in range(1, min(s.sent + 2, self.rides + 1)):
                yield self.appends, (ride,)
        if s.sent < self.rides:
            yield self.commits, (s.sent + 1,)
        if s.log and not s.losses:
            yield self.is_flushed, ()
            for count in range(1, len(s.log)):
                yield self.is_trimmed, (count,)

    def of_worker(self, s: State, worker: int) -> Iterator[Step]:
        for ride, _, delivered in s.hands[worker]:
            if ride in s.outcomes:
                yield self.acknowledges, (worker, ride)
            else:
                yield self.saves if delivered else self.delivers, (worker, ride)
        held = {at for hand in s.hands for _, at, _ in hand}
        for at, ride, who in s.pending:
            if at in held:
                continue
            if (at, ride) not in s.log or (who != worker and ride <= s.sent):
                yield self.claims, (worker, at)
            elif ride <= s.sent:
                yield self.takes_up, (worker, at)
        if any(at > s.last_delivered for at, _ in s.log):
            yield self.reads, (worker,)

    def of_sweep(self, s: State, worker: int) -> Iterator[Step]:
        mine = s.sweeps[worker]
        if mine:
            looks = self.sweep_looks_at_pending if mine.pending is None else self.sweep_takes_up
            yield looks, (worker,)
        elif not any(s.sweeps) and s.complete_to < s.sent:
            yield self.sweep_looks_at_unread, (worker,)

    def progress(self, s: State) -> Iterator[Step]:
        for worker in range(2):
            yield from self.of_worker(s, worker)
        if any(ride > s.sent for _, ride, _ in s.pending):
            yield self.commits, (s.sent + 1,)
        for worker in range(2):
            if s.sweeps[worker] or not any(s.sweeps):
                yield from self.of_sweep(s, worker)

    def is_complete(self, s: State) -> bool:
        return s.complete_to == s.sent and not s.pending

    def with_hand(self, s: State, worker: int, hand: Hand) -> State:
        return replace(s, hands=with_(s.hands, worker, tuple(sorted(hand))))

    def with_sweep(self, s: State, worker: int, sweep: Sweep | None) -> State:
        return replace(s, sweeps=with_(s.sweeps, worker, sweep))


def outcomes_were_delivered(s: State) -> bool:
    """What has an outcome, its receiver has."""
    return s.outcomes <= s.delivered


def all_have_outcomes(s: State) -> bool:
    """Every ride up to complete_to has an outcome."""
    return s.outcomes.issuperset(range(1, s.complete_to + 1))
