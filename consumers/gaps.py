"""Gaps: rides that the log did not contain, and what healing them came to."""

from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import NamedTuple

from rocket_rides.distance import EXACT


class Gap(NamedTuple):
    """Rides with `after < id <= upto` that the log did not contain. All of them are settled."""

    after: int
    upto: int
    is_last: bool = True  # False for a piece that the rest of the gap follows: Handler.prepare


class Healed(NamedTuple):
    """A gap, or a piece of one, with the number of its rides and their distance in metres."""

    gap: Gap
    rides: int
    distance: Decimal


class HealedSum(NamedTuple):
    """What was healed, in sum: gaps that were closed, the rides in them and their metres."""

    gaps: int
    rides: int
    distance: Decimal

    @classmethod
    def of(cls, healed: Iterable[Healed]) -> "HealedSum":
        """A gap in pieces counts with its last one; the rides of each piece count with it."""
        healed = list(healed)
        with localcontext(EXACT):
            distance = sum((each.distance for each in healed), Decimal(0))
        closed = sum(each.gap.is_last for each in healed)
        return cls(closed, sum(each.rides for each in healed), distance)
