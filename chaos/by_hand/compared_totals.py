"""The consumers' totals in the database, compared with the exact sums of the rides."""

import time
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

from rocket_rides.database import one_row

LOOK_EVERY = 0.2  # seconds

# One statement, so one snapshot.
COMPARED_TOTALS = """
    SELECT name, last_ride_id AS ride, total_distance AS total,
           (SELECT coalesce(sum(distance), 0) FROM rides WHERE id <= last_ride_id) AS exact
    FROM checkpoints JOIN consumer_states USING (kind, name)
    WHERE name = ANY(%s)
    ORDER BY name
"""
NEWEST_RIDE = "SELECT coalesce(max(id), 0) FROM rides"


class ComparedTotal(NamedTuple):
    """A consumer's last ride, its total, and the sum of the rides up to that one, in metres."""

    name: str
    ride: int
    total: Decimal
    exact: Decimal


class ComparedTotals:
    """The totals of some consumers. Raises psycopg.Error."""

    def __init__(self, connection: psycopg.Connection, consumers: Iterable[str]) -> None:
        self._connection = connection
        self._consumers = list(consumers)

    def now(self) -> list[ComparedTotal]:
        """One for each consumer that already has a total."""
        cursor = self._connection.cursor(row_factory=class_row(ComparedTotal))
        return cursor.execute(COMPARED_TOTALS, [self._consumers]).fetchall()

    def newest_ride(self) -> int:
        [newest] = one_row(self._connection.execute(NEWEST_RIDE))
        return int(newest)

    def wait_until_exact(self, upto: int, patience: float) -> float | None:
        """Seconds until all had counted ride `upto`, with exact totals; None if they did not."""

        def are_exact() -> bool:
            totals = self.now()
            return len(totals) == len(self._consumers) and all(
                each.ride >= upto and each.total == each.exact for each in totals
            )

        return seconds_until(are_exact, patience)

    def table(self) -> str:
        """The totals, for a person."""
        return "\n".join(
            f"  {each.name} at ride {each.ride}: total {each.total:,} m, {_compared(each)}"
            for each in self.now()
        )


def _compared(row: ComparedTotal) -> str:
    if row.total == row.exact:
        return "which is the exact sum of the rides"
    return f"which is {row.total - row.exact:+} m off: the rides add up to {row.exact:,} m"


def seconds_until(claim: Callable[[], bool], patience: float) -> float | None:
    """Seconds until `claim` became true; None if it did not within `patience` seconds."""
    began = time.monotonic()
    while not claim():
        if time.monotonic() - began > patience:
            return None
        time.sleep(LOOK_EVERY)
    return time.monotonic() - began
