"""One consumer: a checkpoint, a total, and how both move on together, exactly."""

from decimal import Decimal, localcontext

import psycopg

from consumers.digest import Bounds, DeadLetter, Digest, Gap, digest
from consumers.reset import settle
from consumers.round import Healed, Overtaken, Position, Round, Step
from rocket_rides.database import LAST_DRAWN
from rocket_rides.distance import EXACT
from rocket_rides.faults import crash
from rocket_rides.log import START, Entry, Log, as_numbers

CREATE_CHECKPOINT = "INSERT INTO checkpoints (name) VALUES (%s) ON CONFLICT DO NOTHING"
CREATE_STATE = "INSERT INTO consumer_states (name) VALUES (%s) ON CONFLICT DO NOTHING"
LOAD = """
    SELECT last_redis_id, last_ride_id, total_distance
    FROM checkpoints JOIN consumer_states USING (name) WHERE name = %s
"""
# Asked in every round, so that looking for a reset costs no trip of its own.
BOUNDS = f"""
    SELECT last_sent_id, ({LAST_DRAWN}),
           EXISTS (SELECT FROM resets WHERE consumer_name = %s AND status = 'pending')
    FROM streamer_state
"""  # noqa: S608

# Everything in a gap is settled, so its distance is exactly that of the rides in it.
RIDES_IN_GAP = """
    SELECT count(*), coalesce(sum(distance), 0) FROM rides WHERE id > %s AND id <= %s
"""
SET_ASIDE = """
    INSERT INTO dead_letters (consumer_name, redis_id, fields, reason) VALUES (%s, %s, %s, %s)
    ON CONFLICT (consumer_name, redis_id) DO NOTHING
"""

# Compare-and-set: moves only from where the batch was read, so that a second process under the
# same name can't count it too.
MOVE = """
    WITH moved AS (
        UPDATE checkpoints SET last_redis_id = %(redis_id)s, last_ride_id = %(ride_id)s
        WHERE name = %(name)s
          AND last_redis_id = %(from_redis_id)s AND last_ride_id = %(from_ride_id)s
        RETURNING name
    )
    UPDATE consumer_states SET total_distance = total_distance + %(distance)s
    FROM moved WHERE consumer_states.name = moved.name
    RETURNING total_distance
"""


class Consumer:
    """The consumer `name`, on one connection to Postgres and one to Redis."""

    def __init__(
        self, database: psycopg.Connection, log: Log, name: str, batch_size: int = 1000
    ) -> None:
        database.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        self._database = database
        self._log = log
        self._name = name
        self._batch_size = batch_size
        with database.transaction():
            database.execute(CREATE_CHECKPOINT, [name])
            database.execute(CREATE_STATE, [name])
        self.at = self._load()

    def run_once(self, *, wait: float = 0, crash_at: Step | None = None) -> Round:
        """Take one batch from the log, or look after an idle one, and return what was done.

        Waits up to `wait` seconds for an entry, outside any transaction. Raises psycopg.Error,
        redis.RedisError or Overtaken: then nothing was committed.
        """
        entries = self._log.read(self.at.redis_id, self._batch_size, wait)
        bounds, has_reset = self._bounds()
        if has_reset:  # from where that leads, the next round reads again
            return self._reset(crash_at)
        if entries:
            return self._count(entries, bounds, crash_at)
        return self._idle(bounds.last_sent, crash_at)

    def _count(self, entries: list[Entry], bounds: Bounds, crash_at: Step | None) -> Round:
        batch = digest(entries, self.at.ride_id, self.at.redis_id, bounds)
        if batch.last_redis_id == self.at.redis_id:
            return Round(held=True)
        return self._commit(batch, crash_at)

    def _idle(self, last_sent: int, crash_at: Step | None) -> Round:
        """Nothing to read: is the tail missing, or the log not the one we read before?

        last_sent was taken first and the log is read once more after it: what the streamer had
        sent by then is either there now or lost.
        """
        entries = self._log.read(self.at.redis_id, self._batch_size)
        if entries:
            bounds, _ = self._bounds()  # younger than the entries
            return self._count(entries, bounds, crash_at)
        if as_numbers(self._log.last_id()) < as_numbers(self.at.redis_id):
            # Wiped, or restored to an earlier state: what was counted before will be skipped.
            self._commit(Digest(self.at.ride_id, START), crash_at)
            return Round(rewound=True)
        if self.at.ride_id < last_sent:
            tail = Digest(last_sent, self.at.redis_id, [Gap(self.at.ride_id, last_sent)])
            return self._commit(tail, crash_at)
        return Round()

    def _commit(self, batch: Digest, crash_at: Step | None) -> Round:
        """Count the batch, heal its gaps and move the checkpoint: all in one transaction."""
        with self._database.transaction():
            found = [self._heal(f) if isinstance(f, Gap) else f for f in batch.found]
            with localcontext(EXACT):
                distance = sum((f.distance for f in found), Decimal(0))
            crash(Step.BEFORE_STATE, crash_at)
            self._set_aside(batch.dead)
            moved_to = self._move(batch.last_redis_id, batch.last_ride_id, distance)
            crash(Step.BEFORE_COMMIT, crash_at)
        self.at = moved_to
        crash(Step.AFTER_COMMIT, crash_at)
        return Round(found, batch.skipped, batch.dead)

    def _reset(self, crash_at: Step | None) -> Round:
        """Let a reconciliation put the total right, in a transaction of its own."""
        with self._database.transaction():
            crash(Step.BEFORE_STATE, crash_at)
            reset = settle(self._database, self._name)
            moved_to = self._load()
            crash(Step.BEFORE_COMMIT, crash_at)
        self.at = moved_to
        crash(Step.AFTER_COMMIT, crash_at)
        return Round(reset=reset)

    def _heal(self, gap: Gap) -> Healed:
        row = self._database.execute(RIDES_IN_GAP, gap).fetchone()
        assert row is not None  # noqa: S101 (an aggregate has one row)
        return Healed(gap, *row)

    def _set_aside(self, dead: list[DeadLetter]) -> None:
        for entry, reason in dead:
            self._database.execute(SET_ASIDE, [self._name, entry.redis_id, entry.fields, reason])

    def _move(self, redis_id: str, ride_id: int, distance: Decimal) -> Position:
        row = self._database.execute(
            MOVE,
            {
                "name": self._name,
                "redis_id": redis_id,
                "ride_id": ride_id,
                "distance": distance,
                "from_redis_id": self.at.redis_id,
                "from_ride_id": self.at.ride_id,
            },
        ).fetchone()
        if row is None:
            raise Overtaken(f"another process moved the checkpoint of {self._name}")
        return Position(redis_id, ride_id, row[0])

    def _load(self) -> Position:
        row = self._database.execute(LOAD, [self._name]).fetchone()
        if row is None:
            raise Overtaken(f"the checkpoint of {self._name} is gone")
        return Position(*row)

    def _bounds(self) -> tuple[Bounds, bool]:
        """How far the log can be believed, and whether a reset is pending."""
        row = self._database.execute(BOUNDS, [self._name]).fetchone()
        assert row is not None  # noqa: S101 (a table of one row)
        last_sent, last_drawn, has_reset = row
        return Bounds(last_sent, last_drawn), has_reset
