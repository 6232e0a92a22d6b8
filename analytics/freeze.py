"""Freeze: read how far the rides are settled, and where every consumer stands at that very moment.

Everything up to `last_sent` is settled, and rides never change. So one short snapshot is enough:
whatever is read later, up to there, is what this snapshot would have shown. A long one would hold
back vacuum and bloat the outbox.

No consumer counts past `last_sent`. A checkpoint beyond it was not set by a consumer, and does not
mean that the rides up to it are settled.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import psycopg

from analytics.ownership import History, history
from analytics.plain import plain_tables
from unified_log import terms
from unified_log.database import one_row

ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# What is held out past its position, or of a type that it does not handle, a total does not lack.
STANDINGS = """
    SELECT name, position, total_distance, rides, ARRAY(
        SELECT held.position FROM held_out_records held
        WHERE (held.kind, held.name) = (checkpoints.kind, checkpoints.name)
          AND held.position <= checkpoints.position AND held.type = ANY(types)
        ORDER BY held.position
    ), recount IS TRUE
    FROM checkpoints JOIN consumer_states USING (kind, name) ORDER BY name
"""
# From outside: a reader may have lost its state. Ratings have a table of their own, and may have
# none. Whether one recounts is asked in the same words by `standings`, a function of the schema.
READERS = """
    SELECT kind, name, position,
           kind <> 'total' OR EXISTS (
               SELECT FROM consumer_states state WHERE state.name = checkpoints.name
           ) AS has_state,
           recount IS NOT NULL AND (recount OR position < furthest) AS recounts,
           resets_applied
    FROM checkpoints WHERE kind <> 'outside' ORDER BY kind, name
"""
RATERS_WITHOUT_STATE = """
    SELECT name FROM checkpoints WHERE kind = 'ratings'
    AND NOT EXISTS (SELECT FROM rating_sums WHERE rating_sums.name = checkpoints.name)
"""
COUNTERS = """
    SELECT records_sent, coalesce((SELECT max(complete_to) FROM rollup_state), 0),
           coalesce((SELECT max(complete_to) FROM receipts_state), 0) FROM streamer_state
"""


class FrozenConsumer(NamedTuple):
    """A consumer's checkpoint, and its total: metres and rides."""

    name: str
    position: int
    total_distance: Decimal
    rides: int
    held_out: Sequence[int] = ()  # the positions of the rides that its total lacks
    recounts: bool = False  # it was asked to, and has not begun: its total need not be right


class FrozenReader(NamedTuple):
    """A reader of the log of any kind, and whether it has what it should have added up."""

    kind: str
    name: str
    position: int
    has_state: bool = True
    recounts: bool = False  # it was asked to, or is at it: its position need not be far
    recounted: int = 0  # how often it began one, or was reset


class Frozen(NamedTuple):
    """How far the rides are settled, the readers as they stood, and this database's history."""

    position: int
    records_sent: int
    consumers: list[FrozenConsumer]
    readers: list[FrozenReader]
    history: History
    tables: Mapping[str, int]  # their oids


def freeze(connection: psycopg.Connection) -> Frozen:
    """Read everything that moves, once. Raises StateLost, or Unavailable as `plain_tables` does."""
    with connection.transaction():
        connection.execute(ONE_SNAPSHOT)
        tables = plain_tables(connection)
        last_sent = terms.last_sent(connection)
        standings = connection.execute(STANDINGS).fetchall()
        consumers = [FrozenConsumer(*standing) for standing in standings]
        readers = [FrozenReader(*row) for row in connection.execute(READERS)]
        if "rating_sums" in tables:
            lost = {name for (name,) in connection.execute(RATERS_WITHOUT_STATE)}
            readers = [
                each._replace(has_state=False) if each.kind == "ratings" and each.name in lost
                else each for each in readers
            ]  # fmt: skip
        sent, rolled_up, delivered = one_row(connection.execute(COUNTERS))
        # These two say in a row of their own how far they are.
        readers += [FrozenReader("minutes", "all", rolled_up)]
        readers += [FrozenReader("receipts", "all", delivered)]
        ours = history(connection, last_sent)
    return Frozen(last_sent, sent, consumers, readers, ours, tables)
