"""The marker: follows the log, and marks the minutes that its rides fall into as dirty.

It asks `rides` about the whole range of ids that a batch spans, gaps included: so a gap heals like
anything else. The minutes are marked first and the checkpoint moves afterwards. A crash in between
marks them again, which folds.
"""

from decimal import Decimal, localcontext
from typing import NamedTuple

import psycopg

from consumers.checkpoint import Checkpoint, Position
from consumers.digest import Digest, Gap
from consumers.follower import Follower
from consumers.rollup.dirty import DirtyMinutes, Mark
from consumers.rollup.generation import IS_OVERTAKEN, Generation, overtaken
from consumers.rollup.step import Step
from consumers.round import NOTHING_HEALED, HealedSum, Round
from rocket_rides.distance import EXACT
from rocket_rides.faults import reached
from rocket_rides.log import Log

PIECE = 100_000  # rides that are marked at once

# Everything up to there is settled. The session's zone is UTC.
MINUTES = """
    SELECT minute::text, min(id), max(id), count(*), count(*) FILTER (WHERE is_healed),
           coalesce(sum(distance) FILTER (WHERE is_healed), 0)
    FROM (
        SELECT id, distance, date_trunc('minute', created_at) AS minute,
               id <@ %(gaps)s::int8multirange AS is_healed
        FROM rides WHERE id > %(after)s AND id <= %(upto)s ORDER BY id LIMIT %(most)s
    ) piece
    GROUP BY minute
"""


class Minute(NamedTuple):
    """What a piece of the rides has in one minute."""

    name: str
    lowest: int  # ride
    highest: int
    rides: int
    healed: int  # rides that the log did not tell of
    distance_healed: Decimal  # in metres


class Marker(Follower):
    """Marks `dirty` minutes, under the right of a generation."""

    def __init__(
        self,
        connection: psycopg.Connection,
        log: Log,
        checkpoint: Checkpoint,
        generation: Generation,
        dirty: DirtyMinutes,
        batch_size: int = 1000,
    ) -> None:
        asked = {"generation": generation.name}
        super().__init__(connection, log, checkpoint, batch_size, IS_OVERTAKEN, **asked)
        self._generation = generation
        self._dirty = dirty
        self.marked = 0  # rides
        self.at = checkpoint.load()

    def _commit(self, batch: Digest, *, rewound: bool = False) -> Round:
        """Mark the minutes of a batch, or of the first piece of it, and move the checkpoint."""
        upto, healing = self._mark(self.at.ride_id, batch)
        if upto < batch.last_ride_id:
            self.behind = True
            batch = self._cut(upto)
        done = Round([], healing, batch.skipped, batch.dead, batch.unbelieved, rewound)
        to = Position(batch.last_redis_id, batch.last_ride_id)
        reached(Step.AFTER_MARKS)
        with self._connection.transaction():
            self._generation.hold()
            self.checkpoint.move(self.at, to, done)
        self.at = to
        reached(Step.AFTER_MOVE)
        return done

    def _repair(self) -> Round:
        raise overtaken()

    def _mark(self, after: int, batch: Digest) -> tuple[int, HealedSum]:
        """Mark the minutes of the batch's rides, or of a piece of them, which begins at `after`.

        Returns up to which ride, and what was healed by that. A gap counts with its last piece.
        """
        if after == batch.last_ride_id:
            return after, NOTHING_HEALED
        met = self._generation.met_upto
        gaps = [
            Gap(max(new.after, met), new.upto)
            for new in batch.news
            if isinstance(new, Gap) and new.upto > met
        ]
        asked = {
            "gaps": "{" + ",".join(f"({gap.after},{gap.upto}]" for gap in gaps) + "}",
            "after": after,
            "upto": batch.last_ride_id,
            "most": PIECE,
        }
        found = [Minute(*row) for row in self._connection.execute(MINUTES, asked)]
        self._dirty.add([Mark(minute.name, minute.lowest) for minute in found])
        rides = sum(minute.rides for minute in found)
        self.marked += rides
        upto = batch.last_ride_id if rides < PIECE else max(minute.highest for minute in found)
        with localcontext(EXACT):
            distance = sum((minute.distance_healed for minute in found), Decimal(0))
        closed = sum(gap.upto <= upto for gap in gaps)
        return upto, HealedSum(closed, sum(minute.healed for minute in found), distance)
