"""A run's result: the numbers that it prints, writes and acts on. Distances are in metres."""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

from rocket_rides.distance import EXACT


class Tally(NamedTuple):
    """A number of rides, and their exact total distance."""

    rides: int = 0
    distance: Decimal = Decimal(0)

    def plus(self, other: "Tally") -> "Tally":
        """The sum of both. Raises decimal.Inexact if it would not be exact."""
        return Tally(self.rides + other.rides, EXACT.add(self.distance, other.distance))


NOTHING = Tally()


class Compared(NamedTuple):
    """A consumer's frozen total, and the exact total up to the same ride."""

    name: str
    last_ride_id: int
    total_distance: Decimal
    exact_distance: Decimal  # of the rides up to its checkpoint
    stray: bool = False  # its checkpoint lies past every ride that was ever sent

    @property
    def drift(self) -> Decimal:
        """The consumer's total less the exact one: negative when rides are missing."""
        return EXACT.subtract(self.total_distance, self.exact_distance)

    @property
    def wrong(self) -> bool:
        return self.stray or self.drift != 0


class Mismatch(NamedTuple):
    """Rides with `after < id <= upto` on which the warehouse and Postgres disagree."""

    after: int
    upto: int
    warehouse: Tally
    postgres: Tally

    @property
    def difference(self) -> Tally:
        """The warehouse less Postgres: negative where the warehouse lacks something."""
        rides = self.warehouse.rides - self.postgres.rides
        return Tally(rides, EXACT.subtract(self.warehouse.distance, self.postgres.distance))


class PastRun(NamedTuple):
    """A past run, from its row in `reconciliations`."""

    id: int
    created_at: datetime
    drifts: dict[str, Decimal]  # by consumer


@dataclass
class Result:
    """What one run computed, compared and repaired."""

    started_at: datetime
    last_ride_id: int = 0  # everything up to here was frozen, and is settled
    total: Tally = NOTHING  # of the rides up to there
    new: Tally = NOTHING  # of those, the ones that the warehouse lacked
    days: dict[date, Tally] = field(default_factory=dict)  # by UTC date, since the first ride
    consumers: list[Compared] = field(default_factory=list)
    verified: int = 0  # ranges of the warehouse that were checked against Postgres
    mismatches: list[Mismatch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # sentences for a person
    repairing: bool = True  # False with --check
    reconciliation: int | None = None  # the id of this run's row
    resets: list[str] = field(default_factory=list)  # names of the consumers to be reset
    seconds: float = 0

    @property
    def rebuilt(self) -> bool:
        """The warehouse was wrong, and was rebuilt from Postgres."""
        return bool(self.mismatches) and self.reconciliation is not None

    @property
    def agrees(self) -> bool:
        """Every total is right, and so is the warehouse."""
        return not self.mismatches and not any(consumer.wrong for consumer in self.consumers)

    @property
    def newest_day(self) -> date | None:
        """The last UTC date that has rides."""
        return max((day for day, tally in self.days.items() if tally.rides), default=None)
