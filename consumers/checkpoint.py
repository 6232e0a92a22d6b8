"""A checkpoint: where a reader stands in the log and in the rides. It holds the log back."""

from typing import NamedTuple

import psycopg

from rocket_rides.errors import Overtaken

MAKE = "INSERT INTO checkpoints (name) VALUES (%s) ON CONFLICT DO NOTHING RETURNING name"
LOAD = "SELECT last_redis_id, last_ride_id FROM checkpoints WHERE name = %s"
# As strong as the lock of an UPDATE; unlike FOR UPDATE, it does not wait for a job that is
# inserting a row whose foreign key holds a share of this one.
LOCK = "SELECT FROM checkpoints WHERE name = %s FOR NO KEY UPDATE"
# Compare-and-set: moves only from where the batch was read, so that a second process under the
# same name can't count it too.
MOVE = """
    UPDATE checkpoints SET last_redis_id = %(redis_id)s, last_ride_id = %(ride_id)s,
        unbelieved_entries = unbelieved_entries + %(unbelieved)s
    WHERE name = %(name)s
      AND last_redis_id = %(from_redis_id)s AND last_ride_id = %(from_ride_id)s
"""


class Position(NamedTuple):
    """Where a reader stands in the log and in the rides."""

    redis_id: str
    ride_id: int


class Checkpoint:
    """The checkpoint `name`. Each method is for the caller's transaction, and raises psycopg.Error.

    In READ COMMITTED: each statement sees what the one before it has waited for.
    """

    def __init__(self, connection: psycopg.Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    def make(self) -> bool:
        """Make it, at the very beginning, unless it is there; True when it is new."""
        return self._connection.execute(MAKE, [self._name]).fetchone() is not None

    def load(self) -> Position:
        """Where it is. Raises Overtaken when somebody has deleted it."""
        row = self._connection.execute(LOAD, [self._name]).fetchone()
        if row is None:
            raise Overtaken(f"the checkpoint of {self._name} is gone")
        return Position(*row)

    def lock(self) -> None:
        """Have nobody else move it, or apply a repair, before this transaction ends."""
        self._connection.execute(LOCK, [self._name])

    def move(self, before: Position, to: Position, unbelieved: int) -> None:
        """Move it, and note how many entries were not believed. Raises Overtaken."""
        values = {
            "name": self._name,
            "redis_id": to.redis_id,
            "ride_id": to.ride_id,
            "unbelieved": unbelieved,
            "from_redis_id": before.redis_id,
            "from_ride_id": before.ride_id,
        }
        if self._connection.execute(MOVE, values).rowcount != 1:
            raise Overtaken(
                f"the checkpoint of {self._name} was moved by another process, or by hand"
            )
