"""Rides that were answered and are missing: lost, or undone by a restore, which keeps a prefix."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

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


def undone(evidence: Evidence) -> int:
    """How many rides were answered, and are there no more, under whatever id."""
    there = {*evidence.final.rides.values()}
    return sum(1 for ask in evidence.asks if ask.answers and ask.distance not in there)
