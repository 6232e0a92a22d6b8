"""A reader: takes batch after batch from the log and hands its projection each ride once."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import psycopg

from consumers.checkpoint import Checkpoint, Position
from consumers.digest import Bounds, DeadLetter, Digest, Gap, digest
from consumers.projection import Projection
from consumers.round import Healed, Round, Step
from rocket_rides.database import LAST_DRAWN, one_row
from rocket_rides.faults import reached
from rocket_rides.log import START, Log, as_numbers
from rocket_rides.terms import UNLESS_KNOWN, StateLost, Terms

# One statement, so one snapshot. Sent in every round: looking for a repair costs no extra trip.
BOUNDS = f"""
    SELECT last_sent_id, ({LAST_DRAWN}), {UNLESS_KNOWN}, {{repair_is_due}} FROM streamer_state
"""  # noqa: S608

# Everything in a gap is settled, so the rides in it can be added up.
RIDES_IN_GAP = """
    SELECT count(*), coalesce(sum(distance), 0) FROM rides WHERE id > %s AND id <= %s
"""
SET_ASIDE = """
    INSERT INTO dead_letters (consumer_name, redis_id, fields, reason) VALUES (%s, %s, %s, %s)
    ON CONFLICT (consumer_name, redis_id) DO NOTHING
"""

P = TypeVar("P", bound=Projection)


class Reader(Generic[P]):
    """The reader `name` of `log`, with its checkpoint and projection on one connection."""

    def __init__(
        self,
        connection: psycopg.Connection,
        log: Log,
        name: str,
        projection: Callable[[psycopg.Connection, str], P],
        batch_size: int = 1000,
    ) -> None:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        self.name = name
        self.projection = projection(connection, name)
        self._connection = connection
        self._log = log
        self._batch_size = batch_size
        self._bounds_statement = BOUNDS.format(repair_is_due=self.projection.REPAIR_IS_DUE)
        self._checkpoint = Checkpoint(connection, name)
        self._terms = Terms()
        self._last_sent = 0  # as known before a read
        # Both or neither: new state beside an old checkpoint would be wrong for ever.
        with connection.transaction():
            if self._checkpoint.make():
                self.projection.begin()
            self._checkpoint.lock()
            self.at = self._load()

    def run_once(self, *, wait: float = 0) -> Round:
        """Take one batch from the log, or check an idle one, and return what was done.

        Waits up to `wait` seconds for an entry, outside any transaction. Raises psycopg.Error,
        redis.RedisError, Unavailable or Overtaken: then nothing was committed.
        """
        done = self._look(wait)
        if self.at.ride_id < self._last_sent and done in (Round(), Round(held=True)):
            return self._look(0)  # what was sent by then is in the log now, or lost
        return done

    def _look(self, wait: float) -> Round:
        """Read, ask how far the entries can be believed, and count them.

        A read that reached the end of the stream, whatever it held, has seen everything that was
        sent before it: what it did not see is lost.
        """
        sent_before = self._last_sent
        entries = self._log.read(self.at.redis_id, self._batch_size, wait)
        bounds, repair_is_due = self._bounds()  # younger than the entries
        self._last_sent = bounds.last_sent
        if repair_is_due:  # the next round reads from wherever that leads
            return self._repair()
        if not entries and as_numbers(self._log.last_id()) < as_numbers(self.at.redis_id):
            # Wiped, or restored to an earlier state: what was counted before will be skipped.
            return self._commit(Digest(self.at.ride_id, START), rewound=True)
        batch = digest(entries, self.at.ride_id, self.at.redis_id, bounds)
        if len(entries) < self._batch_size:
            batch.close_gap(min(sent_before, bounds.last_sent))
        if (batch.last_redis_id, batch.last_ride_id) == self.at:
            return Round(held=bool(entries))
        return self._commit(batch)

    def _commit(self, batch: Digest, *, rewound: bool = False) -> Round:
        """Count the batch, heal its gaps and move the checkpoint: all in one transaction."""
        to = Position(batch.last_redis_id, batch.last_ride_id)
        with self._connection.transaction():
            news = [self._heal(new) if isinstance(new, Gap) else new for new in batch.news]
            reached(Step.BEFORE_STATE)
            done = Round(news, batch.skipped, batch.dead, batch.unbelieved, rewound)
            self._set_aside(batch.dead)
            self._checkpoint.move(self.at, to, done)
            self.projection.count(news)
            reached(Step.BEFORE_COMMIT)
        self.at = to
        reached(Step.AFTER_COMMIT)
        return done

    def _repair(self) -> Round:
        """Let the projection do what is asked of it, in a transaction of its own."""
        with self._connection.transaction():
            reached(Step.BEFORE_STATE)
            self._checkpoint.lock()
            repair = self.projection.repair()
            moved_to = self._load()
            reached(Step.BEFORE_COMMIT)
        self.at = moved_to
        reached(Step.AFTER_COMMIT)
        return Round(repair=repair)

    def _heal(self, gap: Gap) -> Healed:
        return Healed(gap, *one_row(self._connection.execute(RIDES_IN_GAP, gap)))

    def _set_aside(self, dead: list[DeadLetter]) -> None:
        for entry, reason in dead:
            self._connection.execute(SET_ASIDE, [self.name, entry.redis_id, entry.fields, reason])

    def _load(self) -> Position:
        at = self._checkpoint.load()
        self.projection.load(at)
        return at

    def _bounds(self) -> tuple[Bounds, bool]:
        """How far the log can be believed, and whether a repair is due. Raises StateLost."""
        asked: dict[str, Any] = {"name": self.name, "known": self._terms.newest}
        row = self._connection.execute(self._bounds_statement, asked).fetchone()
        if row is None:
            raise StateLost
        last_sent, last_drawn, terms, repair_is_due = row
        # What was sent was drawn, even if the sequence was set back since.
        believed = self._terms.update(terms, max(last_drawn, last_sent))
        return Bounds(last_sent, believed), repair_is_due
