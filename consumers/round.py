"""What one round of a consumer does: from where to where, and what it met on the way."""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import NamedTuple

from consumers.digest import DeadLetter, Gap, Unbelieved
from consumers.reset import Reset
from rocket_rides.errors import Unavailable
from rocket_rides.log import Record


class Step(Enum):
    """Where a consumer can be made to crash, in order."""

    BEFORE_STATE = "before the batch was counted, or the reset looked at"
    BEFORE_COMMIT = "after its work and before its commit"
    AFTER_COMMIT = "after its commit"


class Overtaken(Unavailable):
    """Another process moved this consumer's checkpoint: this one starts over from there."""


class Position(NamedTuple):
    """Where a consumer stands in the log and in the rides; `total` is in metres."""

    redis_id: str
    ride_id: int
    total: Decimal


class Healed(NamedTuple):
    """A gap, and what the rides table had to say about it; `distance` is in metres."""

    gap: Gap
    rides: int
    distance: Decimal


@dataclass
class Round:
    """What one round did. `found` is in the order of the rides."""

    found: list[Record | Healed] = field(default_factory=list)
    skipped: int = 0
    dead: list[DeadLetter] = field(default_factory=list)
    unbelieved: Unbelieved = field(default_factory=Unbelieved)
    rewound: bool = False
    held: bool = False  # the streamer has not committed the next entry yet
    reset: Reset | None = None
