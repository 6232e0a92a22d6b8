"""Where a total may begin instead of at the first ride: at the newest period that is closed.

A closing says what the rides up to a position add up to (`analytics/close.py`). It is used if its
hash is its own, and it was not reopened. Reopening asks all consumers for a recount, once nobody is
about to begin at it: whoever does holds a lock, shared, until that is committed. So nobody who
began there is forgotten. Nobody waits for that lock, either: a session that can't have it ends, and
begins again a little later.
"""

from decimal import Decimal
from typing import Any, NamedTuple

import psycopg

from rocket_rides.locks import Lock
from unified_log.database import one_row
from unified_log.errors import Unavailable

LOCK = "SELECT pg_try_advisory_xact_lock_shared(%s)"
NEWEST = """
    SELECT position, rides, total_distance FROM closings
    WHERE reopened_at IS NULL AND position > %s AND position <= %s
      AND hash = closing_hash(closings)
    ORDER BY position DESC LIMIT 1
"""


class Closing(NamedTuple):
    """What all rides up to a position add up to; the distance is in metres."""

    position: int
    rides: int
    distance: Decimal


def newest(connection: psycopg.Connection[Any], after: int, upto: int) -> Closing | None:
    """The newest closing with `after < position <= upto`, or None. For a transaction.

    Raises Unavailable while somebody reopens closings.
    """
    if connection.execute(NEWEST, [after, upto]).fetchone() is None:
        return None
    if one_row(connection.execute(LOCK, [Lock.CLOSINGS])) != (True,):
        raise Unavailable("closings are being reopened")
    row = connection.execute(NEWEST, [after, upto]).fetchone()  # again: it may be reopened by now
    return Closing(*row) if row else None
