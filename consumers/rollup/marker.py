"""The marker: follows the log, and marks the minutes that its rides fall into as dirty.

It asks `rides` about the whole range of ids that a batch spans, gaps included: so a gap heals like
anything else. The minutes are marked first and the checkpoint moves afterwards. A crash in between
marks them again, which folds.
"""

import psycopg

from consumers.checkpoint import Checkpoint, Position
from consumers.digest import Digest
from consumers.follower import Follower
from consumers.rollup.dirty import DirtyMinutes, Mark
from consumers.rollup.generation import IS_OVERTAKEN, Generation, overtaken
from consumers.rollup.step import Step
from consumers.round import Round
from rocket_rides.faults import reached
from rocket_rides.log import Log

PIECE = 100_000  # rides that are marked at once

# Everything up to there is settled. The session's zone is UTC.
MINUTES = """
    SELECT minute::text, min(id), max(id), count(*)
    FROM (
        SELECT id, date_trunc('minute', created_at) AS minute FROM rides
        WHERE id > %s AND id <= %s ORDER BY id LIMIT %s
    ) piece
    GROUP BY minute
"""


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
        upto = self._mark(self.at.ride_id, batch.last_ride_id)
        if upto < batch.last_ride_id:  # the entries are read again
            self.behind = True
            done, to = Round(), Position(self.at.redis_id, upto)
        else:
            done = Round([], batch.skipped, batch.dead, batch.unbelieved, rewound)
            to = Position(batch.last_redis_id, batch.last_ride_id)
        reached(Step.AFTER_MARKS)
        with self._connection.transaction():
            self._generation.hold()
            self._checkpoint.move(self.at, to, done)
        self.at = to
        reached(Step.AFTER_MOVE)
        return done

    def _repair(self) -> Round:
        raise overtaken()

    def _mark(self, after: int, upto: int) -> int:
        """Mark the minutes of the rides after `after`; returns up to which ride, at most `upto`."""
        if after == upto:
            return upto
        found = self._connection.execute(MINUTES, [after, upto, PIECE]).fetchall()
        self._dirty.add([Mark(minute, lowest) for minute, lowest, _, _ in found])
        rides = sum(count for *_, count in found)
        self.marked += rides
        return upto if rides < PIECE else max(highest for _, _, highest, _ in found)
