"""The running total of all rides, in metres, and their number: the handler of a total."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import ClassVar

import psycopg

from consumers.rides import TYPE, Ride, ride
from consumers.totals.closing import Closing, newest
from consumers.totals.reset import Reset, apply_newest
from rocket_rides.distance import EXACT
from unified_log.database import one_row
from unified_log.readers.checkpoint import Place
from unified_log.readers.gaps import Gap, Healed
from unified_log.readers.handler import Handler
from unified_log.words import count

logger = logging.getLogger("consumer")

BEGIN = "INSERT INTO consumer_states (name) VALUES (%s)"
BEGIN_AT = "UPDATE consumer_states SET rides = %s, total_distance = %s WHERE name = %s"
LOAD = """
    SELECT rides, total_distance FROM consumer_states WHERE name = %s ORDER BY version DESC LIMIT 1
"""
# After the checkpoint has moved, so nobody else adds to it.
ADD = """
    UPDATE consumer_states
    SET version = version + 1, rides = rides + %s, total_distance = total_distance + %s
    WHERE (name, version) = (
        SELECT name, version FROM consumer_states WHERE name = %s ORDER BY version DESC LIMIT 1
    ) RETURNING rides, total_distance
"""
ADD_HEALED = """
    UPDATE consumer_states SET rides = rides + %s, total_distance = total_distance + %s,
        distance_healed = distance_healed + %s
    WHERE name = %s RETURNING rides, total_distance
"""
# A gap is settled: no ride can still appear in it, so its rides can be added up.
RIDES_IN_GAP = """
    SELECT count(*), coalesce(sum(distance), 0) FROM rides WHERE id > %s AND id <= %s
"""
# Whether the total is what the rides before a gap add up to: what the last run by then has proven,
# and the rides since. It is not if it has drifted, lacks a ride that it holds out, or has yet to
# take some before the gap; nor if somebody has changed it by hand since it was read.
IS_EXACT = """
    WITH proven AS (
        SELECT position, rides, total_distance FROM reconciliations WHERE position <= %(after)s
        UNION ALL SELECT 0, 0, 0 ORDER BY position DESC LIMIT 1
    )
    SELECT (state.rides, state.total_distance) = (%(rides)s, %(distance)s)
       AND (state.rides, state.total_distance)
         = (proven.rides + since.rides, proven.total_distance + since.distance)
    FROM consumer_states state CROSS JOIN proven CROSS JOIN LATERAL (
        SELECT count(*) AS rides, coalesce(sum(distance), 0) AS distance
        FROM rides WHERE id > proven.position AND id <= %(after)s
    ) since
    WHERE name = %(name)s
"""
RECOUNT = """
    UPDATE consumer_states SET (rides, total_distance) = (
        SELECT %s + count(*), %s + coalesce(sum(distance), 0)
        FROM rides WHERE id > %s AND id <= %s
    )
    WHERE name = %s RETURNING rides, total_distance
"""
REPAIR_IS_DUE = """
    SELECT EXISTS (SELECT FROM resets WHERE consumer_name = %(name)s AND status = 'pending')
        OR EXISTS (
            SELECT FROM current_checkpoints reader
            WHERE kind = 'total' AND name = %(name)s AND (recount OR EXISTS (
                SELECT FROM held_out_records held
                WHERE held.kind = 'total' AND held.name = %(name)s
                  AND retry AND held.position <= reader.position
            ))
        )
"""


@dataclass(frozen=True)
class HealedRides(Healed):
    """The rides of a gap, with their distance in metres."""

    distance: Decimal

    @property
    def what(self) -> str:
        return f"{self.distance} m" if self.distance else ""


class Total(Handler):
    """The number of all rides up to the checkpoint, and the exact sum of their distances."""

    KIND = "total"
    TYPES: ClassVar = {TYPE: ride}
    RECORD = "ride"
    STATE = "total"
    rides: int
    distance: Decimal

    def __str__(self) -> str:
        return f"total {self.distance} m"

    def begin(self) -> None:
        """Start from nothing."""
        self.connection.execute(BEGIN, [self.name])

    def close(self, position: int) -> int | None:
        """Begin at the newest closing."""
        if closing := newest(self.connection, 0, position):
            self.connection.execute(BEGIN_AT, [closing.rides, closing.distance, self.name])
            return closing.position
        return None

    def load(self, at: Place) -> None:
        """Read it. Raises Unavailable when it is gone."""
        self.rides, self.distance = self.read_state(LOAD, at)

    def heal(self, gap: Gap) -> HealedRides:
        """Add up the rides of a gap. Raises Overtaken when the total is gone."""
        closing = self._closed_within(gap)
        after = closing.position if closing else gap.after
        found = self.connection.execute(RIDES_IN_GAP, [after, gap.upto])
        rides, distance = one_row(found)
        if closing:  # it has the first of them, and what the total has already
            rides += closing.rides - self.rides
            with localcontext(EXACT):
                distance += closing.distance - self.distance
        self.rides, self.distance = self.write_state(ADD_HEALED, rides, distance, distance)
        return HealedRides(gap, rides, distance)

    def _closed_within(self, gap: Gap) -> Closing | None:
        """The closing at which to begin with this gap, if the total is right so far.

        A total that is not would be right afterwards, and no run would have seen it.
        """
        if not (closing := newest(self.connection, gap.after, gap.upto)):
            return None
        state = {"name": self.name, "rides": self.rides, "distance": self.distance}
        exact = self.connection.execute(IS_EXACT, {"after": gap.after, **state}).fetchone()
        has_less = self.rides <= closing.rides and self.distance <= closing.distance
        return closing if exact == (True,) and has_less else None

    def take(self, records: Sequence[Ride]) -> None:
        """Add up the rides of a batch. Raises Overtaken when the total is gone."""
        with localcontext(EXACT):
            distance = sum((record.distance for record in records), Decimal(0))
        self._add(len(records), distance)

    def ask_for_repair(self) -> psycopg.Cursor:
        """Whether a reconciliation has asked for a reset, or a repair of the log for a recount."""
        return self.connection.execute(REPAIR_IS_DUE, {"name": self.name})

    def repair(self) -> Reset:
        """Apply the newest reset, if it is pending, and recount, if that was asked for."""
        reset = apply_newest(self.connection, self.name)
        if reset.applied:  # so that a recount tells what it found
            self.rides, self.distance = reset.applied.to_rides, reset.applied.to_total
        super().repair()  # last: a reset that was asked for earlier may lack what was repaired
        return reset

    def recount(self, upto: int) -> None:
        """Add up all rides up to the checkpoint anew, from the newest closing on.

        Raises Overtaken when the total is gone.
        """
        was = f"{self} in {count(self.rides, 'ride')}"
        at = newest(self.connection, 0, upto) or Closing(0, 0, Decimal(0))
        self.rides, self.distance = self.remake_state(
            RECOUNT, at.rides, at.distance, at.position, upto
        )
        now = f"{self} in {count(self.rides, 'ride')}"
        since = f" from the closing at {at.position} on" if at.position else ""
        logger.warning("%s added up all rides anew%s: %s, was %s", self.name, since, now, was)

    def _add(self, rides: int, distance: Decimal) -> None:
        self.rides, self.distance = self.write_state(ADD, rides, distance)
