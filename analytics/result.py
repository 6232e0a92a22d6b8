"""A run's result: the numbers that it prints, writes and acts on. Distances are in metres."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from analytics.findings import Finding
    from analytics.ledger import Rated

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
    """A consumer's frozen total, and the exact total up to the same position."""

    name: str
    position: int
    total_distance: Decimal
    exact_distance: Decimal  # of the rides up to its checkpoint
    stray: bool = False  # its checkpoint lies past every record that was ever sent
    rides: int = 0  # that it has counted
    exact_rides: int = 0
    held_out_rides: int = 0  # that it lacks, and says so
    held_out_distance: Decimal = Decimal(0)
    first_held_out: int | None = None  # the lowest position that it holds out
    recounts: bool = False  # it was asked to, and has not begun

    @property
    def drift(self) -> Decimal:
        """Its total and what it holds out, less the exact one: negative when rides are missing."""
        has = EXACT.add(self.total_distance, self.held_out_distance)
        return EXACT.subtract(has, self.exact_distance)

    @property
    def rides_off(self) -> int:
        """The same in rides."""
        return self.rides + self.held_out_rides - self.exact_rides

    @property
    def differs(self) -> bool:
        return self.stray or self.drift != 0 or self.rides_off != 0

    @property
    def wrong(self) -> bool:
        """Whether it differs, and is not about to be made anew in any case."""
        return self.differs and not self.recounts


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
    # Of those that are not compared yet: those that are wrong as far as they go. Only if any are.
    later: list[WrongMinute] = field(default_factory=list)
    # Where something wrong is not being repaired: up to where an earlier run has proved all.
    proved_before: int | None = field(default=None, compare=False)

    @property
    def agrees(self) -> bool:
        return not self.wrong

    @property
    def proved_upto(self) -> int:
        """Where the next run goes on."""
        return self.upto if self.proved_before is None else self.proved_before


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
    held_out_ratings: int = 0  # that it lacks, and says so
    held_out_stars: int = 0
    first_held_out: int | None = None  # the lowest position that it holds out
    recounts: bool = False

    @property
    def off(self) -> tuple[int, int]:
        """What it has and what it holds out, less the exact sums: ratings, and stars."""
        return (
            self.ratings + self.held_out_ratings - self.exact_ratings,
            self.stars + self.held_out_stars - self.exact_stars,
        )

    @property
    def differs(self) -> bool:
        return self.stray or self.off != (0, 0)

    @property
    def wrong(self) -> bool:
        """As of a total."""
        return self.differs and not self.recounts


@dataclass(frozen=True)
class RatingsVerdict:
    """What was found of the consumers of ratings.

    `changed` are blocks whose ratings are not those that an earlier run has added up: these are
    held.
    """

    consumers: list[CountedRatings] = field(default_factory=list)
    changed: tuple[tuple["Rated", int, int], ...] = ()  # and the ratings and stars that are there

    @property
    def wrong(self) -> list[CountedRatings]:
        return [each for each in self.consumers if each.wrong]

    @property
    def agrees(self) -> bool:
        return not self.wrong and not self.changed


class ComparedClosing(NamedTuple):
    """A period that is closed, and what became of its comparison with the rides up to there."""

    id: int
    position: int
    rides: int
    distance: Decimal
    closed_at: datetime
    outcome: str  # one of those in `analytics.balances`


class PastRun(NamedTuple):
    """A past run that completed, from its row in `runs`."""

    id: int
    created_at: datetime
    status: str = "agreed"
    verdicts: Mapping[str, str] = {}  # agreed, wrong or held, of each part that was looked at


@dataclass
class Result:
    """What one run computed, compared and repaired."""

    started_at: datetime
    position: int = 0  # everything up to here was frozen, and is settled
    total: Tally = NOTHING  # of the rides up to there
    new: Tally = NOTHING  # of those, the ones that the warehouse lacked
    consumers: list[Compared] = field(default_factory=list)
    # None until it is looked at.
    rollup: RollupVerdict | None = None
    receipts: ReceiptsVerdict | None = None
    outbox: OutboxVerdict | None = None
    ratings: RatingsVerdict | None = None
    closings: list[ComparedClosing] = field(default_factory=list)  # that are not reopened
    proves_from: ComparedClosing | None = None  # the newest that agrees; None: from the first ride
    verified: int = 0  # blocks of the warehouse that were compared with Postgres
    rides_reread: int = 0  # the rides in these
    findings: list["Finding"] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)  # agreed, wrong or held, by the part
    mismatches: list[Mismatch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # sentences for a person
    repairing: bool = True  # False with --check
    run: int | None = None  # the id of its row in `runs`; None with --check
    approval: int | None = None  # the run whose findings a person has approved, if it acted on that
    reconciliation: int | None = None  # the id of its row in `reconciliations`: the sum is proven
    published: bool = False  # whether the warehouse has the new rides now
    resets: list[str] = field(default_factory=list)  # names of the consumers to be reset
    requested: bool = False  # whether the repair of minutes, receipts or ratings was requested
    last_ride_id: int = 0  # the last ride up to `position`; other records may follow it
    seconds: float = 0

    @property
    def status(self) -> str:
        """agreed; wrong, where nothing waits for a person; or held, where something does."""
        if any(finding.held for finding in self.findings):
            return "held"
        is_wrong = any(not finding.is_under_way for finding in self.findings)
        return "wrong" if is_wrong else "agreed"

    @property
    def agrees(self) -> bool:
        """Everything that was compared is right, and everybody was there, or recounts."""
        return self.status == "agreed"

    @property
    def held(self) -> list["Finding"]:
        return [finding for finding in self.findings if finding.held]
