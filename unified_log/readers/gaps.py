"""Gaps: records that the log did not contain, and what healing them came to."""

from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import NamedTuple

from rocket_rides.distance import EXACT, NONE


class Gap(NamedTuple):
    """Records with `after < id <= upto` that the log did not contain. All of them are settled."""

    after: int
    upto: int
    is_last: bool = True  # False if more of the gap follows this piece: see Handler.prepare


class Healed(NamedTuple):
    """A gap, or a piece of one: how many records of the reader's own types were in it.

    Where these are rides, also their distance in metres.
    """

    gap: Gap
    records: int
    distance: Decimal = NONE


class HealedSum(NamedTuple):
    """What was healed, in sum: gaps that were closed, the records in them and their metres."""

    gaps: int
    records: int
    distance: Decimal

    @classmethod
    def of(cls, healed: Iterable[Healed]) -> "HealedSum":
        """A gap in pieces counts with its last one; the records of each piece count with it."""
        healed = list(healed)
        with localcontext(EXACT):
            distance = sum((each.distance for each in healed), Decimal(0))
        closed = sum(each.gap.is_last for each in healed)
        return cls(closed, sum(each.records for each in healed), distance)
