"""The queue of receipts: one row, which workers take, send and save until it is decided.

No row depends on another, so one row stands for all; `inbox` models how it gets there. A worker can
crash before each of its steps, and a slow one just takes no step. There is no clock: a deadline
passes when `runs_out` is taken.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from lab.specification.explorer import System, Value, named, require, swap

MOST = 2  # attempts that count, until a receipt is a dead letter


class Attempt(Value, frozen=True):
    name: int
    lease: int
    answer: str = ""  # delivered, refused, retry or away; after the deadline, retry
    counts: bool = True  # in `tried`


class Row(Value, frozen=True):
    is_sent: bool = False  # the ride, as last_sent says
    outcome: str = ""  # delivered or dead
    is_replayed: bool = False
    attempts: int = 0  # only rises
    excused: int = 0  # how many of them do not count
    lease: int = 0  # fresh for each attempt; 0 once the attempt has its outcome
    is_due: bool = True
    in_flight: tuple[Attempt, ...] = ()
    tried: int = 0  # from here on, the truth: the attempts that count, as they are made
    was_refused: bool = False  # at one of those
    reached: str = ""  # the outcome, as it should be
    takes: int = 0  # from here on: what has been used of the bounds
    repeats: int = 0
    replays: int = 0

    @property
    def is_open(self) -> bool:
        return self.is_due and (not self.outcome or self.is_replayed)

    @property
    def is_exhausted(self) -> bool:
        return self.attempts - self.excused >= MOST

    def having(self, old: Attempt, *new: Attempt) -> "Row":
        return self.but(in_flight=swap(self.in_flight, old, *new))

    def decided(self, outcome: str) -> "Row":
        reached = self.reached if self.reached == "delivered" else outcome
        return self.but(outcome=outcome, reached=reached, is_replayed=False, lease=0, is_due=True)


class Queue(System):
    def is_sent(self, s: Row) -> Row:
        """last_sent moves past the ride"""
        require(not s.is_sent)
        return s.but(is_sent=True)

    def takes(self, s: Row, new: int) -> Row:
        """a worker writes attempt {new} down, with a fresh lease"""
        require(s.is_open and not s.is_exhausted)
        require(s.is_sent or self.broken == "unsent-rides")
        number = s.attempts - s.excused + 1
        mine = Attempt(new, number if self.broken == "number-as-lease" else new)
        attempts = s.attempts + (self.broken != "written-afterwards")
        taken = s.but(lease=mine.lease, attempts=attempts, is_due=False, takes=new)
        return taken.but(in_flight=(*s.in_flight, mine), tried=s.tried + 1)

    def sends(self, s: Row, attempt: Attempt, answer: str) -> Row:
        """attempt {attempt} is sent: {answer}"""
        require(not attempt.answer)
        return s.having(attempt, attempt.but(answer=answer))

    def saves(self, s: Row, attempt: Attempt) -> Row:
        """the outcome of attempt {attempt} is saved"""
        saved = self.saved(s, attempt)
        return saved.having(named(saved.in_flight, attempt.name))

    def saves_unheard(self, s: Row, attempt: Attempt) -> Row:
        """the outcome of attempt {attempt} is saved, the reply is lost, and it is saved again"""
        return self.saved(s, attempt).but(repeats=s.repeats + 1)

    def saved(self, s: Row, mine: Attempt) -> Row:
        """The holder of the lease saves its outcome; a delivery is saved without the lease, too."""
        require(mine.answer)
        may = s.outcome != "delivered" and (mine.answer == "delivered" or s.lease == mine.lease)
        if mine.answer == "delivered":
            s = s.but(reached="delivered")
            may = may and (s.lease == mine.lease or self.broken != "late-delivery")
        if not may and not (mine.answer == "refused" and self.broken == "late-refusal"):
            return s
        s = s.but(lease=0, is_due=True, attempts=s.attempts + (self.broken == "written-afterwards"))
        if mine.answer == "delivered":
            return s.decided("delivered")
        if mine.answer == "away":
            s = s.having(mine, mine.but(counts=False))
            return s.but(excused=s.excused + 1, tried=s.tried - mine.counts)
        if mine.answer == "refused":
            s = s.but(was_refused=s.was_refused or mine.counts)
        return s.decided("dead") if mine.answer == "refused" or s.is_exhausted else s

    def runs_out(self, s: Row) -> Row:
        """the deadline of the attempt passes, and then its lease"""
        require(not s.is_due)
        s = s.but(is_due=True)
        for mine in s.in_flight if self.broken != "no-deadline" else ():
            if not mine.answer:
                s = s.having(mine, mine.but(answer="retry"))
        return s

    def gives_up(self, s: Row, new: int) -> Row:
        """a worker takes the row as {new} and finds that no attempt is left: it sends nothing"""
        require(s.is_open and s.is_exhausted and self.broken != "never-given-up")
        mine = Attempt(new, new, answer="refused", counts=False)
        return s.but(lease=new, is_due=False, takes=new, in_flight=(*s.in_flight, mine))

    def crashes(self, s: Row, attempt: Attempt) -> Row:
        """the worker of attempt {attempt} crashes"""
        return s.having(attempt)

    def is_replayed(self, s: Row) -> Row:
        """the dead letter is replayed"""
        require(s.outcome == "dead")
        before = tuple(mine.but(counts=False) for mine in s.in_flight)
        s = s.but(is_replayed=True, excused=s.attempts, lease=0)
        if self.broken == "replay-reopens":
            s = s.but(outcome="")
        if self.broken == "replay-at-once":
            s = s.but(is_due=True)
        return s.but(in_flight=before, tried=0, was_refused=False, replays=s.replays + 1)

    def ranges(self, s: Row) -> dict[str, Iterable[Any]]:
        return {
            "new": [s.takes + 1],
            "attempt": s.in_flight,
            "answer": ["delivered", "refused", "retry", "away"],
        }

    def is_complete(self, s: Row) -> bool:
        return bool(s.outcome) and not s.is_replayed

    # What must hold.

    def is_not_early(self, s: Row) -> bool:
        """No attempt is made before last_sent is past the ride."""
        return s.is_sent or not s.takes

    def outcome_stays(self, s: Row) -> bool:
        """An outcome stays; delivered may replace dead, never the reverse."""
        return s.outcome == s.reached

    def is_rightly_dead(self, s: Row) -> bool:
        """Since its last replay a dead letter was refused, or has had all of its attempts."""
        is_dead = s.outcome == "dead" and not s.is_replayed
        return not is_dead or s.was_refused or s.tried == MOST

    def attempts_are_written(self, s: Row) -> bool:
        """Each attempt is written down before it is made, and excused at most once."""
        return s.attempts - s.excused == s.tried <= MOST

    def one_sends(self, s: Row) -> bool:
        """No two workers may send it at a time."""
        return sum(not mine.answer for mine in s.in_flight) <= 1

    start = Row()
    by_chance = (saves_unheard, crashes, is_replayed)
    invariants: ClassVar = {
        "11": is_not_early,
        "15, outcome": outcome_stays,
        "15, dead letters": is_rightly_dead,
        "15, attempts": attempts_are_written,
        "15, one at a time": one_sends,
    }
