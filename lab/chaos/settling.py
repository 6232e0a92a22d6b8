"""Whether a fleet has nothing left to do, and for how long it may have something."""

from typing import cast

import psycopg
import redis

from lab.chaos.fleet import CONSUMERS, STREAM
from rocket_rides.database import one_row

CATCH_UP = 50.0  # rides a second at the least
# Everything is sent, counted by every consumer, and rolled up; and what was asked for is repaired.
ALL_COUNTED = """
    WITH newest AS (SELECT coalesce(max(id), 0) AS ride FROM rides)
    SELECT NOT EXISTS (SELECT FROM staged_log_records)
       AND (SELECT count(*) FROM checkpoints, newest
            WHERE kind = 'total' AND last_ride_id = newest.ride) = %s
       AND (SELECT complete_to = newest.ride FROM rollup_state, newest)
       AND NOT EXISTS (SELECT FROM resets WHERE status = 'pending')
       AND NOT EXISTS (SELECT FROM recomputations WHERE status = 'pending')
"""
BEHIND = """
    SELECT count(*) FROM rides WHERE id > least(
        (SELECT complete_to FROM receipts_state), (SELECT min(last_ride_id) FROM checkpoints)
    )
"""
# Seconds until the last receipt that waits is tried again, by its worker's own schedule. A clock
# that was ahead has made it wait longer, and at most for as long as a worker believes.
WAITS = """
    SELECT coalesce(ceil(extract(epoch FROM max(due_at) - now())), 0) FROM receipts
    WHERE outcome IS NULL AND due_at BETWEEN now() AND now() + interval '600 s'
"""
ALL_DELIVERED = """
    SELECT complete_to = (SELECT coalesce(max(id), 0) FROM rides) FROM receipts_state
"""
ICK = "SELECT ick FROM rollup_state"


def is_counted(connection: psycopg.Connection, client: redis.Redis) -> bool:
    """Whether all that was taken is counted and rolled up."""
    settled = connection.execute(ALL_COUNTED, [len(CONSUMERS)]).fetchone() == (True,)
    return settled and not dirty_minutes(connection, client)


def is_delivered(connection: psycopg.Connection, client: redis.Redis) -> bool:
    """Whether every ride has its receipt, or a dead letter, and nobody is at work on one."""
    delivered = connection.execute(ALL_DELIVERED).fetchone() == (True,)
    return delivered and not pending_entries(client, STREAM)


def left_over(connection: psycopg.Connection, client: redis.Redis, stream: str) -> list[str]:
    """What Redis still has to do, in sentences."""
    dirty, pending = dirty_minutes(connection, client), pending_entries(client, stream)
    found = [f"{dirty} minutes are left dirty"] if dirty else []
    return found + ([f"{len(pending)} entries are left pending: {pending[:5]}"] if pending else [])


def dirty_minutes(connection: psycopg.Connection, client: redis.Redis) -> int:
    """How many minutes are in the Ick, whether reserved or not."""
    [ick] = one_row(connection.execute(ICK))
    if not ick:
        return 0  # nobody has led yet
    return sum(client.zcard(key) for key in client.scan_iter(match=f"*{ick}*/?set"))


def pending_entries(client: redis.Redis, stream: str) -> list[str]:
    """What any group of the stream has not acknowledged."""
    if not client.exists(stream):
        return []
    return [
        cast(bytes, entry["message_id"]).decode()
        for group in client.xinfo_groups(stream)
        for entry in client.xpending_range(stream, group["name"], "-", "+", 1000)
    ]
