"""The consumers' totals in the database, compared with the exact sums of the rides."""

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

from rocket_rides.database import one_row

# One statement, so one snapshot. Each look begins its sums at a ride whose sum the last one found,
# so that it costs as much as the rides since.
COMPARED_TOTALS = """
    SELECT name, last_ride_id AS ride, total_distance AS total,
           CASE WHEN last_ride_id >= %(known)s::bigint THEN %(sum)s::numeric + (
               SELECT coalesce(sum(distance), 0) FROM rides
               WHERE id > %(known)s::bigint AND id <= last_ride_id
           ) ELSE (
               SELECT coalesce(sum(distance), 0) FROM rides WHERE id <= last_ride_id
           ) END AS exact
    FROM checkpoints JOIN consumer_states USING (kind, name)
    WHERE name = ANY(%(names)s)
    ORDER BY name
"""
NEWEST_RIDE = "SELECT coalesce(max(id), 0) FROM rides"


class ComparedTotal(NamedTuple):
    """A consumer's last ride, its total, and the sum of the rides up to that one, in metres."""

    name: str
    ride: int
    total: Decimal
    exact: Decimal

    @property
    def is_exact(self) -> bool:
        return self.total == self.exact

    def __str__(self) -> str:
        compared = (
            "which is the exact sum of the rides"
            if self.is_exact
            else f"which is {self.total - self.exact:+} m off: the rides add up to {self.exact:,} m"
        )
        return f"{self.name} at ride {self.ride:,}: total {self.total:,} m, {compared}"


class ComparedTotals:
    """The totals of some consumers. Raises psycopg.Error."""

    def __init__(self, connection: psycopg.Connection, consumers: Iterable[str]) -> None:
        self._connection = connection
        self._consumers = list(consumers)
        self._known = (0, Decimal(0))  # a ride, and the sum of the rides up to it

    def now(self) -> list[ComparedTotal]:
        """One for each consumer that already has a total."""
        known, total = self._known
        cursor = self._connection.cursor(row_factory=class_row(ComparedTotal))
        values = {"known": known, "sum": total, "names": self._consumers}
        totals = cursor.execute(COMPARED_TOTALS, values).fetchall()
        if totals:
            first = min(totals, key=lambda each: each.ride)
            self._known = first.ride, first.exact
        return totals

    def newest_ride(self) -> int:
        [newest] = one_row(self._connection.execute(NEWEST_RIDE))
        return int(newest)

    def are_exact(self, upto: int) -> bool:
        """Whether all have counted ride `upto`, and are exact."""
        totals = self.now()
        return len(totals) == len(self._consumers) and all(
            each.ride >= upto and each.is_exact for each in totals
        )
