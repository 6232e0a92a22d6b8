"""Emit: write a run's result as a row, and ask each consumer that was wrong to reset itself."""

import msgspec
import psycopg

from analytics.result import Compared, PastRun, Result
from rocket_rides.database import one_row

RECORD = """
    INSERT INTO reconciliations (last_ride_id, total_distance, rides, duration_seconds, compared)
    VALUES (%s, %s, %s, %s, %s) RETURNING id
"""
# Leaves out consumers that were removed meanwhile.
ASK_FOR_RESETS = """
    INSERT INTO resets (reconciliation_id, consumer_name)
    SELECT %s, name FROM checkpoints
    WHERE kind = 'total' AND name = ANY(%s) ORDER BY name FOR KEY SHARE
    RETURNING consumer_name
"""
PAST_RUNS = """
    SELECT id, created_at, consumer.name, consumer.drift
    FROM (SELECT * FROM reconciliations ORDER BY id DESC LIMIT 366) run
    LEFT JOIN jsonb_to_recordset(compared -> 'consumers') consumer(name text, drift numeric)
    ON true ORDER BY id
"""


def emit(connection: psycopg.Connection, result: Result) -> None:
    """Write the row, and the resets, in the caller's transaction; note both in `result`."""
    values = [result.last_ride_id, result.total.distance, result.total.rides, result.seconds]
    [result.reconciliation] = one_row(connection.execute(RECORD, [*values, _compared(result)]))
    wrong = [consumer.name for consumer in result.consumers if consumer.wrong]
    if wrong:
        asked = connection.execute(ASK_FOR_RESETS, [result.reconciliation, wrong])
        result.resets = [name for (name,) in asked]


def _compared(result: Result) -> str:
    return (
        msgspec.json.Encoder(decimal_format="number")
        .encode(
            {
                "new_rides": result.new.rides,
                "ranges_verified": result.verified,
                "consumers": [_as_row(consumer) for consumer in result.consumers],
            }
        )
        .decode()
    )


def _as_row(consumer: Compared) -> dict[str, object]:
    return consumer._asdict() | {"drift": consumer.drift}


def past_runs(connection: psycopg.Connection) -> list[PastRun]:
    """The last 366 runs, oldest first."""
    runs: dict[int, PastRun] = {}
    for number, created_at, name, drift in connection.execute(PAST_RUNS):
        run = runs.setdefault(number, PastRun(number, created_at, {}))
        if name is not None:
            run.drifts[name] = drift
    return list(runs.values())
