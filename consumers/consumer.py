"""One consumer: a checkpoint, a total, and how both move on together, exactly."""

from decimal import Decimal, localcontext

import psycopg
from psycopg import sql

from consumers.digest import Bounds, DeadLetter, Digest, Gap, digest
from consumers.reset import settle
from consumers.round import Healed, Overtaken, Position, Round, Step
from rocket_rides.database import LAST_DRAWN
from rocket_rides.distance import EXACT
from rocket_rides.errors import Unavailable
from rocket_rides.faults import crash
from rocket_rides.log import START, Log, as_numbers
from rocket_rides.terms import UNLESS_KNOWN, StateLost, Terms

# Both or neither: a total that starts at 0 beside a checkpoint that does not is wrong for good.
CREATE = """
    WITH created AS (
        INSERT INTO checkpoints (name) VALUES (%s) ON CONFLICT DO NOTHING RETURNING name
    )
    INSERT INTO consumer_states (name) SELECT name FROM created
"""
LOAD = """
    SELECT last_redis_id, last_ride_id, total_distance
    FROM checkpoints LEFT JOIN consumer_states USING (name) WHERE name = %s
"""
FORGET = sql.SQL("DELETE FROM checkpoints WHERE name = {}")
# One statement, so one snapshot. Asked in every round: a look for a reset costs no trip of its own.
BOUNDS = f"""
    SELECT last_sent_id, ({LAST_DRAWN}), {UNLESS_KNOWN},
           EXISTS (SELECT FROM resets WHERE consumer_name = %(name)s AND status = 'pending')
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
        UPDATE checkpoints SET last_redis_id = %(redis_id)s, last_ride_id = %(ride_id)s,
            unbelieved_entries = unbelieved_entries + %(unbelieved)s
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
        self._terms = Terms()
        self._last_sent = 0  # as known before a read, on this connection
        database.execute(CREATE, [name])
        self.at = self._load()

    def run_once(self, *, wait: float = 0, crash_at: Step | None = None) -> Round:
        """Take one batch from the log, or look after an idle one, and return what was done.

        Waits up to `wait` seconds for an entry, outside any transaction. Raises psycopg.Error,
        redis.RedisError, Unavailable or Overtaken: then nothing was committed.
        """
        done = self._look(wait, crash_at)
        if self.at.ride_id < self._last_sent and done in (Round(), Round(held=True)):
            return self._look(0, crash_at)  # what had been sent by then is there now, or lost
        return done

    def _look(self, wait: float, crash_at: Step | None) -> Round:
        """Read, ask how far what was read can be believed, and count it.

        When the read has reached the end of the stream, whatever it held, then all is lost that
        was sent before it and that it did not tell of.
        """
        sent_before = self._last_sent
        entries = self._log.read(self.at.redis_id, self._batch_size, wait)
        bounds, has_reset = self._bounds()  # younger than the entries
        self._last_sent = bounds.last_sent
        if has_reset:  # from where that leads, the next round reads again
            return self._reset(crash_at)
        if not entries and as_numbers(self._log.last_id()) < as_numbers(self.at.redis_id):
            # Wiped, or restored to an earlier state: what was counted before will be skipped.
            self._commit(Digest(self.at.ride_id, START), crash_at)
            return Round(rewound=True)
        batch = digest(entries, self.at.ride_id, self.at.redis_id, bounds)
        if len(entries) < self._batch_size:
            batch.close_gap(min(sent_before, bounds.last_sent))
        if (batch.last_redis_id, batch.last_ride_id) == self.at[:2]:
            return Round(held=bool(entries))
        return self._commit(batch, crash_at)

    def _commit(self, batch: Digest, crash_at: Step | None) -> Round:
        """Count the batch, heal its gaps and move the checkpoint: all in one transaction."""
        with self._database.transaction():
            found = [self._heal(f) if isinstance(f, Gap) else f for f in batch.found]
            with localcontext(EXACT):
                distance = sum((f.distance for f in found), Decimal(0))
            crash(Step.BEFORE_STATE, crash_at)
            self._set_aside(batch.dead)
            moved_to = self._move(batch, distance)
            crash(Step.BEFORE_COMMIT, crash_at)
        self.at = moved_to
        crash(Step.AFTER_COMMIT, crash_at)
        return Round(found, batch.skipped, batch.dead, batch.unbelieved)

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

    def _move(self, batch: Digest, distance: Decimal) -> Position:
        row = self._database.execute(
            MOVE,
            {
                "name": self._name,
                "redis_id": batch.last_redis_id,
                "ride_id": batch.last_ride_id,
                "distance": distance,
                "unbelieved": batch.unbelieved.total,
                "from_redis_id": self.at.redis_id,
                "from_ride_id": self.at.ride_id,
            },
        ).fetchone()
        if row is None:
            raise Overtaken(
                f"the checkpoint of {self._name} was moved by another process, or by hand"
            )
        return Position(batch.last_redis_id, batch.last_ride_id, row[0])

    def _load(self) -> Position:
        row = self._database.execute(LOAD, [self._name]).fetchone()
        if row is None:
            raise Overtaken(f"the checkpoint of {self._name} is gone")
        if row[2] is None:
            raise Unavailable(
                f"{self._name} has a checkpoint, at ride {row[1]}, and no total; this has it start"
                f" from the first ride: {FORGET.format(self._name).as_string(self._database)}"
            )
        return Position(*row)

    def _bounds(self) -> tuple[Bounds, bool]:
        """How far the log can be believed, and whether a reset is pending."""
        asked = {"name": self._name, "known": self._terms.newest}
        row = self._database.execute(BOUNDS, asked).fetchone()
        if row is None:
            raise StateLost
        last_sent, last_drawn, terms, has_reset = row
        # Should the sequence have been set back: what was sent was drawn.
        believed = self._terms.update(terms, max(last_drawn, last_sent))
        return Bounds(last_sent, believed), has_reset
