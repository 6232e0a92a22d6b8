"""A run's result: the numbers that it prints, writes and acts on. Distances are in metres."""

from dataclasses import dataclass, field
from datetime import datetime
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
NAMED = 10  # this many of what is wrong in one way are named; the others are only counted


class Compared(NamedTuple):
    """A consumer's frozen total, and the exact total up to the same position."""

    name: str
    position: int
    total_distance: Decimal
    exact_distance: Decimal  # of the rides up to its checkpoint
    stray: bool = False  # its checkpoint lies past every record that was ever sent

    @property
    def drift(self) -> Decimal:
        """The consumer's total less the exact one: negative when rides are missing."""
        return EXACT.subtract(self.total_distance, self.exact_distance)

    @property
    def wrong(self) -> bool:
        return self.stray or self.drift != 0


class Mismatch(NamedTuple):
    """Rides with `after < id <= upto` on which the warehouse and Postgres disagree.

    If `minute` is not None, only those of that minute.
    """

    after: int
    upto: int
    warehouse: Tally
    postgres: Tally
    minute: datetime | None = None  # its beginning

    @property
    def difference(self) -> Tally:
        """The warehouse less Postgres: negative where the warehouse lacks something."""
        rides = self.warehouse.rides - self.postgres.rides
        return Tally(rides, EXACT.subtract(self.warehouse.distance, self.postgres.distance))


class WrongMinute(NamedTuple):
    """A minute of the rollup that is not the sum of its rides."""

    minute: datetime  # its beginning
    rolled_up: Tally | None  # None if it is missing
    exact: Tally
    lowest_ride_id: int  # the first of its rides; without any, the last ride compared


@dataclass(frozen=True)
class RollupVerdict:
    """What was found of the minutes whose rides are all among those up to `upto`."""

    upto: int = 0  # the rollup's complete_to, or the frozen position if that is lower
    minutes: int = 0  # compared
    wrong: list[WrongMinute] = field(default_factory=list)  # in order
    set_aside: int = 0  # minutes that the rollup itself says it lacks: not compared

    @property
    def agrees(self) -> bool:
        return not self.wrong


class WrongRides(NamedTuple):
    """How many rides are wrong in one way, and the lowest of their ids."""

    rides: int = 0
    ids: tuple[int, ...] = ()


NONE_WRONG = WrongRides()


class Stretch(NamedTuple):
    """Rides with `after < id <= upto`."""

    after: int
    upto: int


class Proved(NamedTuple):
    """Rides whose receipts are proved: those up to `upto`, but for some stretches."""

    upto: int = 0
    look_again: tuple[Stretch, ...] = ()


@dataclass(frozen=True)
class ReceiptsVerdict:
    """What was found of the receipts of the rides up to their complete_to."""

    upto: int = 0  # the complete_to; the least, if a repair has set it back meanwhile
    rides: int = 0  # looked at
    missing: WrongRides = NONE_WRONG  # they have no outcome
    strange: WrongRides = NONE_WRONG  # they have a receipt, and don't exist
    proved: Proved = field(default_factory=Proved, compare=False)  # by now, for the next run

    @property
    def agrees(self) -> bool:
        return not self.missing.rides and not self.strange.rides


@dataclass(frozen=True)
class OutboxVerdict:
    """What was found of the staged records."""

    staged: int = 0
    sent: WrongRides = NONE_WRONG  # at or below last_sent: never to be sent
    orphans: WrongRides = NONE_WRONG  # without a row of their own
    different: WrongRides = NONE_WRONG  # with another distance than their ride's

    @property
    def agrees(self) -> bool:
        return not (self.sent.rides or self.orphans.rides or self.different.rides)


class CountedRatings(NamedTuple):
    """What a consumer of ratings has counted up to its position, and what it should have."""

    name: str
    position: int
    ratings: int
    stars: int
    stray: bool  # it stands past every record that was sent
    exact_ratings: int
    exact_stars: int


@dataclass(frozen=True)
class RatingsVerdict:
    """What was found of the consumers of ratings."""

    consumers: list[CountedRatings] = field(default_factory=list)

    @property
    def wrong(self) -> list[CountedRatings]:
        return [each for each in self.consumers if each.stray or each[2:4] != each[5:7]]

    @property
    def agrees(self) -> bool:
        return not self.wrong


class PastRun(NamedTuple):
    """A past run, from its row in `reconciliations`: what agreed, or None where nobody looked."""

    id: int
    created_at: datetime
    totals: bool | None = None
    rollup: bool | None = None
    receipts: bool | None = None
    outbox: bool | None = None
    ratings: bool | None = None


@dataclass
class Result:
    """What one run computed, compared and repaired."""

    started_at: datetime
    position: int = 0  # everything up to here was frozen, and is settled
    total: Tally = NOTHING  # of the rides up to there
    new: Tally = NOTHING  # of those, the ones that the warehouse lacked
    consumers: list[Compared] = field(default_factory=list)
    # None until it is looked at. If the warehouse is wrong, only a full run looks at the rollup.
    rollup: RollupVerdict | None = None
    receipts: ReceiptsVerdict | None = None
    outbox: OutboxVerdict | None = None
    ratings: RatingsVerdict | None = None
    verified: int = 0  # ranges of the warehouse that were checked against Postgres
    mismatches: list[Mismatch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # sentences for a person
    repairing: bool = True  # False with --check
    reconciliation: int | None = None  # the id of this run's row
    resets: list[str] = field(default_factory=list)  # names of the consumers to be reset
    requested: bool = False  # whether the repair of minutes, receipts or ratings was requested
    last_ride_id: int = 0  # the last ride up to `position`; other records may follow it
    seconds: float = 0

    @property
    def rebuilt(self) -> bool:
        """The warehouse was wrong, and was rebuilt from Postgres."""
        return bool(self.mismatches) and self.reconciliation is not None

    @property
    def agrees(self) -> bool:
        """Everything that was compared is right."""
        proofs = (self.rollup, self.receipts, self.outbox, self.ratings)
        return (
            not self.mismatches
            and not any(consumer.wrong for consumer in self.consumers)
            and all(proof is None or proof.agrees for proof in proofs)
        )
