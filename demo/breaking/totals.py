"""The consumers' totals in the database, compared with the exact sums of the rides."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

# One statement, so one snapshot.
COMPARED = """
    SELECT name, last_ride_id AS ride, total_distance AS total,
           (SELECT coalesce(sum(distance), 0) FROM rides WHERE id <= last_ride_id) AS exact
    FROM checkpoints JOIN consumer_states USING (kind, name)
    WHERE name = ANY(%s)
    ORDER BY name
"""


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


def compared(connection: psycopg.Connection, consumers: Sequence[str]) -> list[ComparedTotal]:
    """One for each of these consumers that already has a total. Raises psycopg.Error."""
    cursor = connection.cursor(row_factory=class_row(ComparedTotal))
    return cursor.execute(COMPARED, [list(consumers)]).fetchall()
