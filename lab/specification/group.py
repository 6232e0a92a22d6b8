"""Receipts: a consumer group, its workers, and the sweep, on a log that is right."""

from collections.abc import Iterable
from typing import ClassVar

from lab.specification.explorer import System, Value, named, require, swap


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
