"""Rides by the hundred thousand, straight into the tables and into the log."""

import psycopg

from rocket_rides.log import Log

STAGE = """
    WITH ride AS (
        INSERT INTO rides (distance)
        SELECT (1 + random() * 99999)::numeric(12,3) FROM generate_series(1, %s)
        RETURNING id, distance
    )
    INSERT INTO staged_log_records (id, action, object, data)
    SELECT id, 'create', 'ride', jsonb_build_object('id', id, 'distance', distance) FROM ride
"""
STAGED = "SELECT id, data::text FROM staged_log_records ORDER BY id"

BATCH = 1000


def stage(database: psycopg.Connection, records: int) -> None:
    """Take `records` rides and stage them, in one transaction."""
    database.execute(STAGE, [records])


def append_staged(database: psycopg.Connection, log: Log) -> int:
    """Put what is staged into the log, without the streamer; how many entries that made."""
    staged = database.execute(STAGED).fetchall()
    prev = 0
    for start in range(0, len(staged), BATCH):
        batch = staged[start : start + BATCH]
        log.append(batch, prev)
        prev = batch[-1][0]
    return len(staged)


def as_commands(database: psycopg.Connection, stream: str) -> bytes:
    """What is staged, as XADD commands in Redis' own protocol, for redis-cli --pipe."""
    commands = []
    prev = 0
    for position, data in database.execute(STAGED):
        words = ("XADD", stream, "*", "data", data, "prev", str(prev))
        lines = [f"*{len(words)}", *(f"${len(word)}\r\n{word}" for word in words), ""]
        commands.append("\r\n".join(lines))
        prev = position
    return "".join(commands).encode()
