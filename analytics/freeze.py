"""Freeze: read how far the rides are settled, and where every consumer stands at that very moment.

Everything up to `last_sent` is settled, and rides never change. So one short snapshot is enough:
whatever is read later, up to there, is what this snapshot would have shown. A long one would hold
back vacuum and bloat the outbox.

No consumer counts past `last_sent`. A checkpoint beyond it was not set by a consumer, and does not
mean that the rides up to it are settled.
"""

from decimal import Decimal
from typing import NamedTuple

import psycopg

from analytics.ownership import History, history
from rocket_rides import terms

ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
STANDINGS = """
    SELECT name, position, total_distance
    FROM checkpoints JOIN consumer_states USING (kind, name) ORDER BY name
"""


class FrozenConsumer(NamedTuple):
    """A consumer's checkpoint and total, in metres."""

    name: str
    position: int
    total_distance: Decimal


class Frozen(NamedTuple):
    """How far the rides are settled, the consumers as they stood, and this database's history."""

    position: int
    consumers: list[FrozenConsumer]
    history: History


def freeze(connection: psycopg.Connection) -> Frozen:
    """Read everything that moves, once. Raises StateLost."""
    with connection.transaction():
        connection.execute(ONE_SNAPSHOT)
        last_sent = terms.last_sent(connection)
        standings = connection.execute(STANDINGS).fetchall()
        ours = history(connection, last_sent)
    return Frozen(last_sent, [FrozenConsumer(*standing) for standing in standings], ours)
