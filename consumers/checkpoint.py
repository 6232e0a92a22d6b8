"""A checkpoint: where a reader stands in the log and in the rides. Trimming stops there."""

from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from consumers.belief import set_aside
from consumers.digest import Digest
from consumers.gaps import Healed, HealedSum
from rocket_rides.database import one_row
from rocket_rides.errors import Overtaken

MAKE = """
    INSERT INTO checkpoints (kind, name) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING name
"""
LOAD = "SELECT last_redis_id, last_ride_id FROM checkpoints WHERE kind = %s AND name = %s"
# As strong as the lock of an UPDATE. Unlike FOR UPDATE, it does not wait for a transaction that is
# inserting a row with a foreign key to this one.
LOCK = "SELECT FROM checkpoints WHERE kind = %s AND name = %s FOR NO KEY UPDATE"
# Compare-and-set: it moves only from where the batch was read, so that a second process of the same
# name can't count the batch too. What was met on the way is counted in the same statement.
MOVE = """
    UPDATE checkpoints SET last_redis_id = %(redis_id)s, last_ride_id = %(ride_id)s,
        counted_at = CASE WHEN %(ride_id)s > last_ride_id
                          THEN clock_timestamp() ELSE counted_at END,
        gaps_healed = gaps_healed + %(gaps)s,
        rides_healed = rides_healed + %(rides)s,
        distance_healed = distance_healed + %(distance)s,
        resends_skipped = resends_skipped + %(skipped)s,
        entries_set_aside = entries_set_aside + %(set_aside)s,
        entries_not_ours = entries_not_ours + %(not_ours)s
    WHERE kind = %(kind)s AND name = %(name)s
      AND last_redis_id = %(from_redis_id)s AND last_ride_id = %(from_ride_id)s
"""
ADD_CRASHES = """
    UPDATE checkpoints SET crashes_injected = crashes_injected + %s WHERE kind = %s AND name = %s
"""
GO_BACK = """
    UPDATE checkpoints SET furthest = greatest(furthest, last_ride_id), last_ride_id = %s
    WHERE kind = %s AND name = %s RETURNING furthest
"""


class Position(NamedTuple):
    """Where a reader stands in the log and in the rides."""

    redis_id: str
    ride_id: int


class Checkpoint:
    """The checkpoint `name` of a kind of readers.

    Each method is for the caller's transaction, and raises psycopg.Error. Its isolation level is
    READ COMMITTED: each statement sees what the one before it waited for.
    """

    def __init__(self, connection: psycopg.Connection, kind: str, name: str) -> None:
        self._connection = connection
        self._kind = kind
        self.name = name

    def make(self) -> bool:
        """Create it, at the very beginning, unless it exists; returns whether it is new."""
        return self._connection.execute(MAKE, [self._kind, self.name]).fetchone() is not None

    def load(self) -> Position:
        """Read it. Raises Overtaken when somebody has deleted it."""
        row = self._connection.execute(LOAD, [self._kind, self.name]).fetchone()
        if row is None:
            raise Overtaken(f"the checkpoint of {self.name} is gone")
        return Position(*row)

    def lock(self) -> None:
        """Keep anyone else from moving or repairing it until this transaction ends."""
        self._connection.execute(LOCK, [self._kind, self.name])

    def go_back(self, ride_id: int) -> int:
        """Set it back to a ride; returns how far it ever was: what is up to there was met before.

        The rides after `ride_id` that the log no longer tells of are a gap.
        """
        row = one_row(self._connection.execute(GO_BACK, [ride_id, self._kind, self.name]))
        return int(row[0])

    def add_crashes(self, number: int) -> None:
        """Count injected crashes."""
        self._connection.execute(ADD_CRASHES, [number, self._kind, self.name])

    def move(self, before: Position, batch: Digest, healed: Sequence[Healed]) -> Position:
        """Move it past a batch, set its invalid entries aside, and count what it held and lacked.

        Returns where it stands then. Raises Overtaken unless it stood at `before`.
        """
        new = [set_aside(self._connection, self._kind, self.name, each) for each in batch.set_aside]
        to = Position(batch.last_redis_id, batch.last_ride_id)
        values = {
            "kind": self._kind,
            "name": self.name,
            "redis_id": to.redis_id,
            "ride_id": to.ride_id,
            **HealedSum.of(healed)._asdict(),
            "skipped": batch.skipped,
            "set_aside": sum(new),
            "not_ours": batch.not_ours.total,
            "from_redis_id": before.redis_id,
            "from_ride_id": before.ride_id,
        }
        if self._connection.execute(MOVE, values).rowcount != 1:
            raise Overtaken(
                f"another process, or somebody by hand, moved the checkpoint of {self.name}"
            )
        return to
