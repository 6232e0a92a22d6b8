"""The rides that the job adds up, and the consumers that it checks: one right, two wrong."""

from decimal import Decimal

import psycopg

from rocket_rides.database import one_row

MILLIMETRE = Decimal("0.001")
# A million a day, each of up to ten kilometres, to the millimetre.
INSERT = """
    INSERT INTO rides (distance, created_at)
    SELECT (1 + number * 7919 %% 9999991) / 1000.0,
           timestamptz '2026-03-01 00:00+00' + number * interval '86.4 ms'
    FROM generate_series(1::bigint, %s) number
"""
SENT = "UPDATE streamer_state SET last_sent_id = (SELECT last_value FROM log_position)"
CHECKPOINT = "INSERT INTO checkpoints (kind, name, last_ride_id) VALUES ('total', %s, %s)"
STATE = """
    INSERT INTO consumer_states (name, total_distance)
    SELECT %s, coalesce(sum(distance), 0) + %s FROM rides WHERE id <= %s
"""
SUM = "SELECT count(*), sum(distance) FROM rides"


def insert(connection: psycopg.Connection, count: int) -> None:
    """This many rides, which the streamer has sent long ago, and three consumers."""
    connection.execute(INSERT, [count])
    connection.execute(SENT)
    connection.execute("VACUUM ANALYZE rides")
    for name, at, drift in (
        ("right", count, Decimal(0)),
        ("one millimetre short", count, -MILLIMETRE),
        ("one millimetre too many, behind", count * 2 // 3 + 1, MILLIMETRE),
    ):
        connection.execute(CHECKPOINT, [name, at])
        connection.execute(STATE, [name, drift, at])


def total(connection: psycopg.Connection) -> dict[str, int | Decimal]:
    """What Postgres adds up itself."""
    rides, distance = one_row(connection.execute(SUM))
    return {"rides": rides, "distance": distance}
