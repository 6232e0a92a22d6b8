"""How long rides took to flow again after a fault."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from chaos.ledger import Ask
from chaos.nemesis import Struck
from chaos.observer import Watch


class Recovery(NamedTuple):
    """From the end of a fault until a ride asked for after it was in every total."""

    seconds: float
    after: str
    disturbed: bool  # by another fault, in all of that time or in some of it


def recoveries(struck: Sequence[Struck], asks: Iterable[Ask], watch: Watch) -> list[Recovery]:
    """One for each fault that a ride was asked for after."""
    rides = sorted((ask.asked_at, ask.answers[0].ride) for ask in asks if ask.answers)
    moments = [asked_at for asked_at, _ in rides]
    # The least ride of those asked for at that moment or later: the first one to be counted.
    least = list(accumulate((ride for _, ride in reversed(rides)), min))[::-1]
    found = []
    for fault in struck:
        after = bisect_right(moments, fault.ended)
        counted = watch.counted_at(least[after]) if after < len(least) else None
        if counted is not None:
            disturbed = any(
                other is not fault and other.began < counted and other.ended > fault.ended
                for other in struck
            )
            found.append(Recovery(counted - fault.ended, f"{fault.kind} of {fault.hit}", disturbed))
    return found
