"""Trimming: the log lets go of what every consumer has read, and never outgrows its cap."""

import psycopg

from rocket_rides.log import START, Log, as_numbers

CHECKPOINTS = "SELECT last_redis_id FROM checkpoints"


def _slowest(database: psycopg.Connection) -> str:
    """The id up to which every consumer has read; the start while there is no consumer."""
    return min((row[0] for row in database.execute(CHECKPOINTS)), key=as_numbers, default=START)


def trim(database: psycopg.Connection, log: Log, cap: int) -> int:
    """Drop entries that every checkpoint is past, and whatever exceeds `cap` entries.

    The cap protects Redis' memory from a consumer that never comes back; one that does come
    back finds a gap and heals it from the rides. Returns how many entries went.
    """
    return log.trim_before(_slowest(database)) + log.trim_to(cap)


def make_room(database: psycopg.Connection, log: Log) -> int:
    """Redis has no memory left: drop what every checkpoint is past, else half of the log."""
    return log.trim_before(_slowest(database), exactly=True) or log.trim_to(
        log.length() // 2, exactly=True
    )
