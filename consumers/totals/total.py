"""The running total of all rides, in metres: the projection of `python -m consumers`."""

from collections.abc import Sequence
from decimal import Decimal, localcontext

from psycopg import sql

from consumers.checkpoint import Position
from consumers.projection import Projection
from consumers.round import Healed
from consumers.totals.reset import Reset, apply_newest
from rocket_rides.distance import EXACT
from rocket_rides.errors import Overtaken, Unavailable
from rocket_rides.log import Record

BEGIN = "INSERT INTO consumer_states (name) VALUES (%s)"
LOAD = "SELECT total_distance FROM consumer_states WHERE name = %s"
FORGET = sql.SQL("DELETE FROM checkpoints WHERE kind = 'total' AND name = {}")
ADD = """
    UPDATE consumer_states SET total_distance = total_distance + %s WHERE name = %s
    RETURNING total_distance
"""


class Total(Projection):
    """The exact sum of the distances of all rides up to the checkpoint."""

    KIND = "total"
    REPAIR_IS_DUE = (
        "EXISTS (SELECT FROM resets WHERE consumer_name = %(name)s AND status = 'pending')"
    )
    distance: Decimal

    def __str__(self) -> str:
        return f"total {self.distance} m"

    def begin(self) -> None:
        """Start from nothing."""
        self.connection.execute(BEGIN, [self.name])

    def load(self, at: Position) -> None:
        """Read it. Raises Unavailable when it is gone: going on from 0 would be wrong for ever."""
        row = self.connection.execute(LOAD, [self.name]).fetchone()
        if row is None:
            raise Unavailable(
                f"{self.name} has a checkpoint, at ride {at.ride_id}, but no total; this makes it"
                f" start from the first ride: {FORGET.format(self.name).as_string(self.connection)}"
            )
        [self.distance] = row

    def count(self, news: Sequence[Record | Healed]) -> None:
        """Add the distances to the total. Raises Overtaken when the total is gone."""
        with localcontext(EXACT):
            distance = sum((new.distance for new in news), Decimal(0))
        row = self.connection.execute(ADD, [distance, self.name]).fetchone()
        if row is None:
            raise Overtaken(f"the total of {self.name} is gone")
        [self.distance] = row

    def repair(self) -> Reset:
        """Apply what a reconciliation asks for."""
        return apply_newest(self.connection, self.name)
