"""How long rides took to flow again after a fault."""

from collections.abc import Iterable, Sequence
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
    """One for each fault."""
    rides = [(ask.asked_at, ask.answers[0].ride) for ask in asks if ask.answers]
    found = []
    for fault in struck:
        first = min((ride for asked_at, ride in rides if asked_at > fault.ended), default=None)
        counted = watch.counted_at(first) if first else None
        if counted is not None:
            disturbed = any(
                other is not fault and other.began < counted and other.ended > fault.ended
                for other in struck
            )
            found.append(Recovery(counted - fault.ended, fault.what, disturbed))
    return found
