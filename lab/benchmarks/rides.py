"""Inserts many rides at once, as if the streamer had sent them long ago."""

import psycopg

INSERT = """
    INSERT INTO rides (distance, created_at)
    SELECT ((random() * 10000 + 0.001)::numeric(12,3)),
           now() - make_interval(secs => (%(count)s - number) * %(seconds)s)
    FROM generate_series(1, %(count)s) number
"""
SENT = "UPDATE streamer_state SET last_sent_id = (SELECT last_value FROM log_position)"


def insert(connection: psycopg.Connection, count: int, seconds_apart: float = 0.0864) -> None:
    """Insert `count` rides of the last days, by default a million a day, and vacuum the table."""
    connection.execute(INSERT, {"count": count, "seconds": seconds_apart})
    connection.execute(SENT)
    connection.execute("VACUUM ANALYZE rides")
