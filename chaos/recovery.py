"""How long it took after a fault until rides reached the totals again."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from chaos.journal import Ask
from chaos.nemesis import Struck
from chaos.observer import Watch
from chaos.restore import Restore


class Recovery(NamedTuple):
    """From the end of a fault until a ride asked for after it was in every total."""

    seconds: float
    after: str
    disturbed: bool  # by another fault during some or all of that time


def recoveries(
    struck: Sequence[Struck], asks: Iterable[Ask], watch: Watch, restores: Iterable[Restore] = ()
) -> list[Recovery]:
    """One for each fault after which a ride was asked for and counted."""
    bounds = [0.0, *sorted(restore.killed for restore in restores), float("inf")]
    answered = [ask for ask in asks if ask.answers]
    lives = [Life(begin, end, answered, watch) for begin, end in pairwise(bounds)]
    measured = []
    for fault in struck:
        moments = (life.first_counted(fault.ended) for life in lives)
        counted = next((moment for moment in moments if moment is not None), None)
        if counted is not None:
            disturbed = any(
                other is not fault and other.began < counted and other.ended > fault.ended
                for other in struck
            )
            what = f"{fault.kind} of {fault.hit}"
            measured.append(Recovery(counted - fault.ended, what, disturbed))
    return measured


class Life:
    """The database between two restores. The next restore draws some of the same ids again."""

    def __init__(self, begin: float, end: float, answered: Iterable[Ask], watch: Watch) -> None:
        self._begin, self._end, self._watch = begin, end, watch
        rides = sorted(
            (ask.asked_at, ask.answers[0].ride)
            for ask in answered
            if ask.asked_at >= begin and ask.answers[0].came < end
        )
        self._moments = [asked_at for asked_at, _ in rides]
        # The lowest ride asked for at that moment or later, which is the first to be counted.
        self._least = list(accumulate((ride for _, ride in reversed(rides)), min))[::-1]

    def first_counted(self, since: float) -> float | None:
        """When every total had the first ride that was asked for after `since`, in this life."""
        since = max(since, self._begin)
        index = bisect_right(self._moments, since)
        if since >= self._end or index == len(self._least):
            return None
        return self._watch.counted_at(self._least[index], since, self._end)
