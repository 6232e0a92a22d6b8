"""What the rollup and the receipts have made of the rides, read when a run is over."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, cast

import psycopg
import redis

from lab.chaos.clocks import Jump, true_moment


class Minute(NamedTuple):
    """One row of the rollup; `upto` is its label, `distance` is in metres."""

    rides: int
    distance: Decimal
    upto: int


@dataclass
class FinalRollup:
    """The rollup's rows, how far it calls itself complete, and what it still had to do."""

    minutes: dict[datetime, Minute]
    complete_to: int
    set_aside: list[str] = field(default_factory=list)  # each a sentence
    dirty: int = 0  # minutes in the Ick


class FinalReceipt(NamedTuple):
    """What became of a ride's receipt (None: nothing yet), and when, on the monotonic clock."""

    outcome: str | None
    decided: float | None = None


@dataclass
class FinalReceipts:
    """What became of the receipts, by ride, and what is still pending."""

    outcomes: dict[int, FinalReceipt]
    complete_to: int
    pending: list[str] = field(default_factory=list)  # Redis ids


MINUTES = "SELECT minute, rides, distance, upto FROM ride_minutes"
ROLLUP = "SELECT complete_to, ick FROM rollup_state"
SET_ASIDE = """
    SELECT 'the minute ' || to_char(minute AT TIME ZONE 'UTC', 'HH24:MI') || ' was set aside: '
        || reason FROM set_aside_minutes
"""
OUTCOMES = """
    SELECT ride_id, outcome, extract(epoch FROM clock_timestamp() - decided_at)::float8
    FROM receipts
"""
RECEIPTS = "SELECT complete_to FROM receipts_state"


def read_rollup(connection: psycopg.Connection, client: redis.Redis) -> FinalRollup:
    """Read what the rollup has and what it owes. Raises psycopg.Error or redis.RedisError."""
    minutes = connection.execute(MINUTES).fetchall()
    [(complete_to, ick)] = connection.execute(ROLLUP)
    return FinalRollup(
        {minute: Minute(*row) for minute, *row in minutes},
        complete_to,
        [line for (line,) in connection.execute(SET_ASIDE)],
        dirty_minutes(client, ick),
    )


def read_receipts(
    connection: psycopg.Connection,
    client: redis.Redis,
    stream: str,
    jumps: Iterable[Jump] = (),
) -> FinalReceipts:
    """Read what became of the receipts. Raises psycopg.Error or redis.RedisError."""
    rows = connection.execute(OUTCOMES).fetchall()
    now = time.monotonic()
    outcomes = {
        ride: FinalReceipt(outcome, None if ago is None else true_moment(now - ago, jumps))
        for ride, outcome, ago in rows
    }
    [(complete_to,)] = connection.execute(RECEIPTS)
    return FinalReceipts(outcomes, complete_to, pending_entries(client, stream))


def dirty_minutes(client: redis.Redis, ick: str) -> int:
    """How many minutes are in this Ick, whether reserved or not."""
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
