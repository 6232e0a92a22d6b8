"""Minutes that could not be computed: each is kept with its reason, and stops no other.

Until such a minute is right, `complete_to` does not rise to the lowest ride that it lacks; where it
is past that ride already, it stays. The minute is tried again when another ride falls into it, and
when somebody asks for that: `python -m consumers.rollup.set_aside retry`.
"""

from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

from consumers.rollup.dirty import Mark
from unified_log.database import one_row

PUT = """
    INSERT INTO set_aside_minutes AS known (minute, lowest_ride_id, reason, attempts)
    VALUES (%s, %s, %s, %s)
    ON CONFLICT (minute) DO UPDATE
    SET lowest_ride_id = least(known.lowest_ride_id, excluded.lowest_ride_id),
        reason = excluded.reason, attempts = known.attempts + excluded.attempts,
        set_aside_at = excluded.set_aside_at, retry = false
    RETURNING xmax = 0
"""
TO_RETRY = """
    SELECT minute::text, lowest_ride_id FROM set_aside_minutes
    WHERE retry ORDER BY set_aside_at, minute LIMIT 1
"""
ALL = """
    SELECT minute::text, lowest_ride_id, attempts, retry, reason
    FROM set_aside_minutes ORDER BY minute
"""
ASK = "UPDATE set_aside_minutes SET retry = true"


class SetAsideMinute(NamedTuple):
    """A minute as Postgres writes it, and what is known about it."""

    minute: str
    lowest_ride_id: int
    attempts: int
    retry: bool  # somebody asked for another attempt
    reason: str


def put(connection: psycopg.Connection, mark: Mark, reason: str, attempts: int) -> bool:
    """Set a minute aside after so many attempts; returns whether it was not set aside before."""
    values = [mark.minute, mark.lowest, reason, attempts]
    return bool(one_row(connection.execute(PUT, values))[0])


def to_retry(connection: psycopg.Connection) -> Mark | None:
    """A minute for which somebody asked for another attempt; the one that has waited longest."""
    row = connection.execute(TO_RETRY).fetchone()
    return Mark(*row) if row else None


def listed(connection: psycopg.Connection) -> list[SetAsideMinute]:
    """All of them, oldest minute first."""
    return connection.cursor(row_factory=class_row(SetAsideMinute)).execute(ALL).fetchall()


def ask(connection: psycopg.Connection) -> None:
    """Ask for another attempt at all of them."""
    connection.execute(ASK)
