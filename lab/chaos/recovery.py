"""How long it took until rides reached the totals again, when nothing was broken any more.

Faults overlap. So they are taken together: a fault that begins before the fleet has recovered from
those before it belongs to the same *chain*, and a chain ends with the last end of its faults. From
then on nothing is broken until the fleet has recovered, and how long that takes is asserted.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import NamedTuple

from lab.chaos.journal import Ask
from lab.chaos.nemesis import Struck
from lab.chaos.observer import Watch
from lab.chaos.restore import Restore

LONGEST = 10.0  # seconds that a recovery may take
# They keep no ride from the totals, however long they take, so no recovery has to wait for their
# end. Only from their end on is there anything to recover from.
HARMLESS = {
    "lost-outcome",
    "nightly",
    "receiver-fails",
    "stranger",
    "warehouse-full",
    "wrong-minute",
    "wrong-total",
}
HARMLESS_VICTIMS = ("receipts", "rollup")
NEVER = float("inf")


class Recovery(NamedTuple):
    """From the end of a chain of faults until a ride asked for after it was in every total."""

    seconds: float
    after: str  # the fault that ended last
    faults: int = 1  # in the chain
    lasted: float = 0  # seconds, from the first fault's beginning to the last one's end


def recoveries(
    struck: Iterable[Struck], asks: Iterable[Ask], watch: Watch, restores: Iterable[Restore] = ()
) -> list[Recovery]:
    """One for each chain of faults after which a ride was asked for and counted."""
    lives = Lives(asks, watch, restores)
    measured = []
    spans = (f._replace(began=f.ended) if is_harmless(f) else f for f in struck)
    for chain, counted in _chains(sorted(spans), lives):
        if counted < NEVER:
            last = max(chain, key=attrgetter("ended"))
            measured.append(
                Recovery(
                    counted - last.ended,
                    f"{last.kind} of {last.hit}",
                    len(chain),
                    last.ended - chain[0].began,
                )
            )
    return measured


def is_harmless(fault: Struck) -> bool:
    """Whether rides get into the totals meanwhile."""
    return fault.kind in HARMLESS or fault.hit.startswith(HARMLESS_VICTIMS)


def too_slow(recoveries: Iterable[Recovery], longest: float) -> Iterator[str]:
    """A finding for each recovery that took longer than `longest` seconds."""
    for each in recoveries:
        if each.seconds > longest:
            alone = each.faults == 1
            chain = "" if alone else f", the last of {each.faults} faults that overlapped,"
            yield (
                f"after {each.after}{chain} it took {each.seconds:.1f} s until rides were counted, "
                f"and may take {longest:.0f} s"
            )


def _chains(struck: Sequence[Struck], lives: "Lives") -> Iterator[tuple[list[Struck], float]]:
    """The faults, by when they began, in chains; and when the fleet had recovered from each."""
    chain: list[Struck] = []
    ended = counted = 0.0
    for fault in struck:
        if chain and fault.began > ended and fault.began > (counted := lives.first_counted(ended)):
            yield chain, counted
            chain = []
        ended = max(ended, fault.ended) if chain else fault.ended
        chain.append(fault)
    if chain:
        yield chain, lives.first_counted(ended)


class Lives:
    """The database between one restore and the next, which draws some of the same ids again."""

    def __init__(self, asks: Iterable[Ask], watch: Watch, restores: Iterable[Restore]) -> None:
        self._bounds = [0.0, *sorted(restore.killed for restore in restores), NEVER]
        rides: list[list[tuple[float, int]]] = [[] for _ in pairwise(self._bounds)]
        for ask in asks:
            life = bisect_right(self._bounds, ask.asked_at) - 1
            if ask.answers and ask.answers[0].came < self._bounds[life + 1]:
                rides[life].append((ask.asked_at, ask.answers[0].ride))
        spans = zip(pairwise(self._bounds), rides, strict=True)
        self._lives = [Life(*span, sorted(taken), watch) for span, taken in spans]

    def first_counted(self, since: float) -> float:
        """When every total had the first ride that was asked for after `since`; or never."""
        first = bisect_left(self._bounds, since, lo=1) - 1
        moments = (life.first_counted(since) for life in self._lives[first:])
        return next((moment for moment in moments if moment is not None), NEVER)


class Life:
    """One of them, with its `rides`: when each was asked for, in order, and its id."""

    def __init__(
        self, begin: float, end: float, rides: Sequence[tuple[float, int]], watch: Watch
    ) -> None:
        self._begin, self._end, self._watch = begin, end, watch
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
