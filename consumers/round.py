"""What one round of a reader does, and what it met on the way."""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import NamedTuple

from consumers.digest import DeadLetter, Gap, Unbelieved
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


@dataclass
class Round:
    """What one round did. By default: nothing."""

    news: list[Record | Healed] = field(default_factory=list)  # in the order of the rides
    skipped: int = 0  # re-sends
    dead: list[DeadLetter] = field(default_factory=list)
    unbelieved: Unbelieved = field(default_factory=Unbelieved)
    rewound: bool = False  # to the start of the log, which was wiped or restored
    held: bool = False  # the streamer has not committed the next entry yet
    repair: object = None  # what the projection reports about its repair
