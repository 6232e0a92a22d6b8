"""A reader: takes batch after batch from the log and hands its projection each ride once."""

from collections.abc import Callable
from typing import Generic, TypeVar

import psycopg

from consumers.checkpoint import Checkpoint, Position
from consumers.digest import Digest, Gap
from consumers.follower import Follower
from consumers.projection import Projection
from consumers.round import Healed, HealedSum, Round, Step
from rocket_rides.database import one_row
from rocket_rides.faults import reached
from rocket_rides.log import Log

# A gap ends at or below `last_sent`, and what was sent is settled: no ride can still appear in it,
# so its rides can be added up.
RIDES_IN_GAP = """
    SELECT count(*), coalesce(sum(distance), 0) FROM rides WHERE id > %s AND id <= %s
"""

P = TypeVar("P", bound=Projection)


class Reader(Follower, Generic[P]):
    """The reader `name` of `log`, with its checkpoint and projection on one connection."""

    def __init__(
        self,
        connection: psycopg.Connection,
        log: Log,
        name: str,
        projection: Callable[[psycopg.Connection, str], P],
        batch_size: int = 1000,
    ) -> None:
        self.projection = projection(connection, name)
        checkpoint = Checkpoint(connection, self.projection.KIND, name)
        super().__init__(connection, log, checkpoint, batch_size, self.projection.REPAIR_IS_DUE)
        # Both or neither: new state beside an old checkpoint would be wrong for ever.
        with connection.transaction():
            if self.checkpoint.make():
                self.projection.begin()
            self.checkpoint.lock()
            self.at = self._load()

    def _commit(self, batch: Digest, *, rewound: bool = False) -> Round:
        """Heal the gaps, move the checkpoint and count the batch, all in one transaction.

        The checkpoint moves by compare-and-set: a second process of this name, which wants to count
        the same batch, gets Overtaken.
        """
        to = Position(batch.last_redis_id, batch.last_ride_id)
        with self._connection.transaction():
            news = [self._heal(new) if isinstance(new, Gap) else new for new in batch.news]
            reached(Step.BEFORE_STATE)
            healing = HealedSum.of(news)
            done = Round(news, healing, batch.skipped, batch.dead, batch.unbelieved, rewound)
            self.checkpoint.move(self.at, to, done)
            self.projection.count(news)
            reached(Step.BEFORE_COMMIT)
        self.at = to
        reached(Step.AFTER_COMMIT)
        return done

    def _repair(self) -> Round:
        """Let the projection do what is asked of it, in a transaction of its own."""
        with self._connection.transaction():
            reached(Step.BEFORE_STATE)
            self.checkpoint.lock()
            repair = self.projection.repair()
            moved_to = self._load()
            reached(Step.BEFORE_COMMIT)
        self.at = moved_to
        reached(Step.AFTER_COMMIT)
        return Round(repair=repair)

    def _heal(self, gap: Gap) -> Healed:
        return Healed(gap, *one_row(self._connection.execute(RIDES_IN_GAP, gap)))

    def _load(self) -> Position:
        at = self.checkpoint.load()
        self.projection.load(at)
        return at
