"""Whether a fleet has nothing left to do."""

from typing import cast

import psycopg
import redis

from lab.chaos.books.statements import ALL_TOTALS, ASKED, COUNTED, DELIVERED, ROLLED_UP
from lab.chaos.books.tables import broken
from lab.chaos.fleet import STREAM
from rocket_rides.database import one_row

ICK = "SELECT ick FROM rollup_state"


def is_settled(connection: psycopg.Connection, client: redis.Redis) -> bool:
    """Whether all rides are counted and rolled up, all repairs are done, and no receipt is open."""
    left = broken(connection, (COUNTED, ALL_TOTALS, ROLLED_UP, ASKED, DELIVERED))
    return not left and not left_over(connection, client, STREAM)


def left_over(connection: psycopg.Connection, client: redis.Redis, stream: str) -> list[str]:
    """A sentence for each kind of work that is left in Redis."""
    dirty, pending = dirty_minutes(connection, client), pending_entries(client, stream)
    found = [f"{dirty} minutes are left dirty"] if dirty else []
    return found + ([f"{len(pending)} entries are left pending: {pending[:5]}"] if pending else [])


def dirty_minutes(connection: psycopg.Connection, client: redis.Redis) -> int:
    """How many minutes are in the Ick."""
    [ick] = one_row(connection.execute(ICK))
    if not ick:
        return 0  # nobody has led yet
    return sum(client.zcard(key) for key in client.scan_iter(match=f"*/rollup/{ick}"))


def pending_entries(client: redis.Redis, stream: str) -> list[str]:
    """How many entries the groups of the stream have not acknowledged."""
    if not client.exists(stream):
        return []
    return [
        cast(bytes, entry["message_id"]).decode()
        for group in client.xinfo_groups(stream)
        for entry in client.xpending_range(stream, group["name"], "-", "+", 1000)
    ]
