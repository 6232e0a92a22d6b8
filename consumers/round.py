"""What one round of a reader does, and what it met on the way."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from enum import Enum
from typing import NamedTuple

from consumers.digest import DeadLetter, Gap, Unbelieved
from rocket_rides.distance import EXACT
from rocket_rides.log import Record


class Step(Enum):
    """Where a consumer can be made to crash, in order."""

    BEFORE_STATE = "before the batch was counted, or the repair looked at"
    BEFORE_COMMIT = "after its work and before its commit"
    AFTER_COMMIT = "after its commit"


class Healed(NamedTuple):
    """A gap, with the number of rides in it and their total distance in metres."""

    gap: Gap
    rides: int
    distance: Decimal


class HealedSum(NamedTuple):
    """What was healed, in sum: gaps that were closed, the rides in them and their metres."""

    gaps: int = 0
    rides: int = 0
    distance: Decimal = Decimal(0)

    @classmethod
    def of(cls, news: Iterable[object]) -> "HealedSum":
        """The sum of the gaps among `news`."""
        healed = [new for new in news if isinstance(new, Healed)]
        if not healed:
            return NOTHING_HEALED
        with localcontext(EXACT):
            distance = sum((gap.distance for gap in healed), Decimal(0))
        return cls(len(healed), sum(gap.rides for gap in healed), distance)


NOTHING_HEALED = HealedSum()


@dataclass
class Round:
    """What one round did. By default: nothing."""

    news: list[Record | Healed] = field(default_factory=list)  # in the order of the rides
    healing: HealedSum = NOTHING_HEALED
    skipped: int = 0  # re-sends
    dead: list[DeadLetter] = field(default_factory=list)
    unbelieved: Unbelieved = field(default_factory=Unbelieved)
    rewound: bool = False  # to the start of the log, which was wiped or restored
    held: bool = False  # the streamer has not committed the next entry yet
    repair: object = None  # what the projection reports about its repair

    @property
    def did_nothing(self) -> bool:
        """Whether there was nothing to do, or nothing yet that the streamer has committed."""
        return self == Round(held=self.held)
