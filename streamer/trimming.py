"""Trimming: the log lets go of what every reader is past, and never outgrows its cap."""

import psycopg

from rocket_rides.log import Log
from rocket_rides.readers import slowest


def trim(connection: psycopg.Connection, log: Log, cap: int) -> int:
    """Drop entries that every reader is past, and whatever exceeds `cap` entries.

    The cap protects Redis' memory from a reader that never comes back; one that does come back
    finds a gap and heals it from the rides. Returns how many entries went.
    """
    return log.trim_before(slowest(connection)) + log.trim_to(cap)


def make_room(connection: psycopg.Connection, log: Log) -> int:
    """Redis has no memory left: drop what every reader is past, else half of the log."""
    return log.trim_before(slowest(connection), exactly=True) or log.trim_to(
        log.length() // 2, exactly=True
    )
