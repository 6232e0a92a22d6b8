"""When the nightly run is due: every day at one local time, once, even when the clocks change."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import count

import psycopg

# The first ride by id stands for the oldest: the index on the time, a BRIN, finds no minimum.
MISSED = """
    SELECT coalesce((SELECT created_at FROM rides ORDER BY id LIMIT 1) < %(due)s, false)
        AND NOT EXISTS (
            SELECT FROM runs WHERE started_at >= %(due)s AND status NOT IN ('running', 'failed')
        )
"""


def newest_due(now: datetime, at: time) -> datetime:
    """The latest moment up to `now`, in UTC, at which now's zone first reached the time `at`.

    A time that the clocks skip is read by the old clock: 02:30 is then 03:30.
    """
    today = now.date()
    dues = (_due(today - timedelta(days), at, now) for days in count())
    return next(due for due in dues if due <= now.astimezone(UTC))


def next_due(now: datetime, at: time) -> datetime:
    """The first such moment after `now`, in UTC."""
    yesterday = now.date() - timedelta(1)
    dues = (_due(yesterday + timedelta(days), at, now) for days in count())
    return next(due for due in dues if due > now.astimezone(UTC))


def _due(day: date, at: time, now: datetime) -> datetime:
    # In UTC, because Python compares two times of one zone by their clock times.
    return datetime.combine(day, at, now.tzinfo).astimezone(UTC)


def missed(connection: psycopg.Connection, due: datetime) -> bool:
    """Whether there were rides to reconcile at `due` and no run has completed since."""
    row = connection.execute(MISSED, {"due": due}).fetchone()
    return row == (True,)
