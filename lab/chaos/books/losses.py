"""Rides that were answered and are missing: lost, or undone by a restore, which keeps a prefix."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import attrgetter

from lab.chaos.evidence import Evidence
from lab.chaos.journal import Answer, Ask
from lab.chaos.restore import Restore


class Excuses:
    """The restores of a run, each with the moment after which it may have undone anything.

    A backup holds what was committed up to some moment between its beginning and its end. A ride
    that the old server took and that still exists was in the backup; so was everything answered
    before anybody asked for that ride.
    """

    def __init__(self, evidence: Evidence) -> None:
        kept = sorted(
            (ask.answers[0].came, ask.asked_at) for ask in evidence.asks if _is_kept(evidence, ask)
        )
        self._since = [(restore, _kept_up_to(restore, kept)) for restore in evidence.restores]

    def cover(self, answer: Answer) -> bool:
        """Whether a restore may have undone the ride in this answer."""
        return any(
            restore.may_undo(answer) and answer.came > since for restore, since in self._since
        )


def _is_kept(evidence: Evidence, ask: Ask) -> bool:
    """It has one answer, which holds. With two, a restore may have drawn the same id again."""
    rides = evidence.final.rides
    return len(ask.answers) == 1 and rides.get(ask.answers[0].ride) == ask.distance


def _kept_up_to(restore: Restore, kept: Sequence[tuple[float, float]]) -> float:
    """`kept` is when each answer came, in order, and when its ride was asked for."""
    first = bisect_right(kept, restore.began, key=_came)
    by_the_old_server = kept[first : bisect_left(kept, restore.killed, key=_came)]
    return max((asked_at for _, asked_at in by_the_old_server), default=restore.began)


def _came(kept: tuple[float, float]) -> float:
    return kept[0]


class Undoing:
    """Whether any of the restores may have undone an answer, found by halving."""

    def __init__(self, restores: Iterable[Restore]) -> None:
        self._restores = sorted(restores, key=attrgetter("began"))
        # Of those that began so early, the latest end.
        self._killed = list(accumulate((r.killed for r in self._restores), max))

    def may_undo(self, answer: Answer) -> bool:
        began_before = bisect_left(self._restores, answer.came, key=attrgetter("began"))
        return began_before > 0 and answer.sent < self._killed[began_before - 1]


def lost(evidence: Evidence) -> list[Ask]:
    """Rides answered with 201 that are not there as answered, and no restore explains why."""
    rides, excuses = evidence.final.rides, Excuses(evidence)
    return [
        ask
        for ask in evidence.asks
        if any(
            a.distance != ask.distance or (rides.get(a.ride) != a.distance and not excuses.cover(a))
            for a in ask.answers
        )
    ]


def undone(evidence: Evidence, *, by_failover: bool) -> tuple[list[Ask], list[Ask]]:
    """The rides that restores undid for good, or fail-overs, and all that they may have undone.

    A ride that was asked for again after the restore exists again.
    """
    there = set(evidence.final.rides.values())
    undoing = Undoing(r for r in evidence.restores if r.by_failover == by_failover)
    exposed = [
        ask
        for ask in evidence.asks
        if ask.answers and all(undoing.may_undo(answer) for answer in ask.answers)
    ]
    return [ask for ask in exposed if ask.distance not in there], exposed
