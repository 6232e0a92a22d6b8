"""Puts hundreds of thousands of rides straight into the tables, and through the outbox."""

import time

import psycopg

from lab.benchmarks.stand import PATIENCE
from rocket_rides.settings import Settings
from unified_log.streamer.drain import Streamer

BATCH: int = Settings.model_fields["batch_size"].default
STAGE = """
    WITH ride AS (
        INSERT INTO rides (distance, created_at)
        SELECT (1 + random() * 99999)::numeric(12,3), now() - make_interval(mins => %s)
        FROM generate_series(1, %s)
        RETURNING id, distance
    )
    INSERT INTO staged_log_records (id, type, data)
    SELECT id, 'ride.create', jsonb_build_object('id', id, 'distance', distance) FROM ride
"""
# A million a day, up to now.
INSERT = """
    INSERT INTO rides (distance, created_at)
    SELECT ((random() * 10000 + 0.001)::numeric(12,3)),
           now() - make_interval(secs => (%(count)s - number) * 0.0864)
    FROM generate_series(1, %(count)s) number
"""
SENT = """
    UPDATE streamer_state SET last_sent_id = (SELECT last_value FROM log_position),
        records_sent = (SELECT count(*) FROM log_records)
"""


def stage(connection: psycopg.Connection, records: int, minutes_ago: int = 0) -> None:
    connection.execute(STAGE, [minutes_ago, records])


def insert_as_sent(connection: psycopg.Connection, count: int) -> None:
    """Insert rides as if the streamer had sent them long ago, and vacuum their table."""
    connection.execute(INSERT, {"count": count})
    connection.execute(SENT)
    connection.execute("VACUUM ANALYZE rides")


def drain(streamer: Streamer, records: int) -> float:
    """Let the streamer send `records` staged records; returns how many seconds it took."""
    started = time.perf_counter()
    sent = 0
    while sent < records:
        sent += streamer.run_once()
        if time.perf_counter() - started > PATIENCE:
            raise TimeoutError(f"{sent} of {records} records were sent in {PATIENCE:.0f} s")
    return time.perf_counter() - started
