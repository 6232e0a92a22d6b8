"""The marker: marks the minutes of the log's rides as dirty.

It reads all rides in the range of ids that a batch spans, gaps included: so a gap heals like
anything else. The minutes are marked first, and the checkpoint moves afterwards. After a crash in
between they are marked again, which changes nothing.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import psycopg

from consumers.rides import TYPE, Ride, ride
from consumers.rollup.dirty import DirtyMinutes, Mark
from consumers.rollup.generation import KIND, NAME, Generation
from consumers.rollup.step import RollupStep
from unified_log.database import one_row
from unified_log.faults import reached
from unified_log.readers.gaps import Gap, Healed
from unified_log.readers.handler import Handler

PIECE = 100_000  # rides that are marked at once

# Everything up to `upto` is settled. The session's time zone is UTC.
MINUTES = """
    SELECT minute::text, min(id), max(id), count(*)
    FROM (
        SELECT id, date_trunc('minute', created_at) AS minute
        FROM rides WHERE id > %(after)s AND id <= %(upto)s ORDER BY id LIMIT %(most)s
    ) piece
    GROUP BY minute
"""
RIDES_IN_GAP = """
    SELECT count(*) FROM rides WHERE id > %s AND id <= %s
"""


class Minute(NamedTuple):
    """What a piece of the rides has in one minute."""

    name: str
    lowest: int  # ride
    highest: int
    rides: int


class Marker(Handler):
    """Marks `dirty` minutes, under a generation."""

    KIND = KIND
    RECOUNTS = False
    TYPES: ClassVar = {TYPE: ride}
    RECORD = "ride"

    def __init__(
        self, connection: psycopg.Connection, generation: Generation, dirty: DirtyMinutes
    ) -> None:
        super().__init__(connection, NAME)
        self._generation = generation
        self._dirty = dirty
        self.marked = 0  # rides

    def prepare(self, after: int, upto: int) -> int:
        """Mark the minutes of these rides, or of as many as are marked at once."""
        asked = {"after": after, "upto": upto, "most": PIECE}
        found = [Minute(*row) for row in self.connection.execute(MINUTES, asked)]
        self._dirty.add([Mark(minute.name, minute.lowest) for minute in found])
        rides = sum(minute.rides for minute in found)
        self.marked += rides
        reached(RollupStep.AFTER_MARKS)
        return upto if rides < PIECE else max(minute.highest for minute in found)

    def fence(self) -> None:
        """Raise Overtaken unless this generation may still move the checkpoint."""
        self._generation.hold(self.connection)

    def heal(self, gap: Gap) -> Healed | None:
        """Count the rides of a gap that no lead has met before. Their minutes are marked."""
        met = self._generation.met_upto
        if gap.upto <= met:
            return None
        new = gap._replace(after=max(gap.after, met))
        return Healed(new, *one_row(self.connection.execute(RIDES_IN_GAP, [new.after, new.upto])))

    def take(self, records: Sequence[Ride]) -> None:
        """Do nothing: their minutes are marked already."""

    def ask_for_repair(self) -> None:
        """Never: a rollup is repaired under its next generation."""
