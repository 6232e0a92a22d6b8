"""Where the consumers stand according to the database, and whether their totals are exact."""

import time
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

LOOK_EVERY = 0.2  # seconds

# One statement, so one snapshot.
STANDINGS = """
    SELECT name, last_ride_id AS ride, total_distance AS total,
           (SELECT coalesce(sum(distance), 0) FROM rides WHERE id <= last_ride_id) AS exact
    FROM checkpoints JOIN consumer_states USING (name)
    WHERE name = ANY(%s)
    ORDER BY name
"""
NEWEST_RIDE = "SELECT coalesce(max(id), 0) FROM rides"


class Standing(NamedTuple):
    """A consumer's last ride, its total, and the sum of the rides up to that one, in metres."""

    name: str
    ride: int
    total: Decimal
    exact: Decimal


class Books:
    """What the database says about some consumers. Raises psycopg.Error."""

    def __init__(self, connection: psycopg.Connection, consumers: Collection[str]) -> None:
        self._connection = connection
        self._consumers = list(consumers)

    def standings(self) -> list[Standing]:
        """The standings of those that already have a total."""
        cursor = self._connection.cursor(row_factory=class_row(Standing))
        return cursor.execute(STANDINGS, [self._consumers]).fetchall()

    def newest_ride(self) -> int:
        row = self._connection.execute(NEWEST_RIDE).fetchone()
        assert row is not None  # noqa: S101 (an aggregate has one row)
        return int(row[0])

    def wait_until_exact(self, upto: int, patience: float) -> float | None:
        """Seconds until all had counted ride `upto`, with exact totals; None if they did not."""

        def are_exact() -> bool:
            standings = self.standings()
            return len(standings) == len(self._consumers) and all(
                standing.ride >= upto and standing.total == standing.exact for standing in standings
            )

        return seconds_until(are_exact, patience)

    def table(self) -> str:
        """The standings, for a person."""
        return "\n".join(
            f"  {s.name} at ride {s.ride}: total {s.total:,} m, {_compared(s)}"
            for s in self.standings()
        )


def _compared(standing: Standing) -> str:
    if standing.total == standing.exact:
        return "which is the exact sum of the rides"
    drift = standing.total - standing.exact
    return f"which is {drift:+} m off: the rides add up to {standing.exact:,} m"


def seconds_until(claim: Callable[[], bool], patience: float) -> float | None:
    """Seconds until `claim` became true; None if it did not within `patience` seconds."""
    began = time.monotonic()
    while not claim():
        if time.monotonic() - began > patience:
            return None
        time.sleep(LOOK_EVERY)
    return time.monotonic() - began
