"""A checkpoint: where a reader stands in the log and in the rides. Trimming stops there."""

from typing import NamedTuple

import psycopg

from consumers.round import Round
from rocket_rides.errors import Overtaken

MAKE = """
    INSERT INTO checkpoints (kind, name) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING name
"""
LOAD = "SELECT last_redis_id, last_ride_id FROM checkpoints WHERE kind = %s AND name = %s"
# As strong as the lock of an UPDATE. Unlike FOR UPDATE, it does not wait for a transaction that is
# inserting a row with a foreign key to this one.
LOCK = "SELECT FROM checkpoints WHERE kind = %s AND name = %s FOR NO KEY UPDATE"
# Compare-and-set: it moves only from where the batch was read, so that a second process of the same
# name can't count the batch too.
MOVE = """
    UPDATE checkpoints SET last_redis_id = %(redis_id)s, last_ride_id = %(ride_id)s,
        unbelieved_entries = unbelieved_entries + %(unbelieved)s
    WHERE kind = %(kind)s AND name = %(name)s
      AND last_redis_id = %(from_redis_id)s AND last_ride_id = %(from_ride_id)s
"""
GO_BACK = "UPDATE checkpoints SET last_ride_id = %s WHERE kind = %s AND name = %s"
SET_ASIDE = """
    INSERT INTO dead_letters (consumer_kind, consumer_name, redis_id, fields, reason)
    VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (consumer_kind, consumer_name, redis_id) DO NOTHING
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

    def go_back(self, ride_id: int) -> None:
        """Set it back to a ride. The rides after it that the log no longer tells of are a gap."""
        self._connection.execute(GO_BACK, [ride_id, self._kind, self.name])

    def move(self, before: Position, to: Position, done: Round) -> None:
        """Move it, add up what the round met on the way, and keep its dead letters.

        Raises Overtaken.
        """
        values = {
            "kind": self._kind,
            "name": self.name,
            "redis_id": to.redis_id,
            "ride_id": to.ride_id,
            "unbelieved": done.unbelieved.total,
            "from_redis_id": before.redis_id,
            "from_ride_id": before.ride_id,
        }
        if self._connection.execute(MOVE, values).rowcount != 1:
            raise Overtaken(
                f"another process, or somebody by hand, moved the checkpoint of {self.name}"
            )
        for entry, reason in done.dead:
            letter = [self._kind, self.name, entry.redis_id, entry.fields, reason]
            self._connection.execute(SET_ASIDE, letter)
