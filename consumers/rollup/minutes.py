"""Computing minutes anew, from the rides: the same result however often, and whoever does it."""

from collections.abc import Sequence

import psycopg

from consumers.rollup.generation import Generation, overtaken
from unified_log.terms import StateLost

# One statement, so one snapshot of the rides and of last_sent, which labels the result, as `upto`:
# rides above it don't count.
#
# Rides are looked up in stretches, since a backlog has thousands of minutes in a row. The index on
# created_at finds them: a condition on the id would tempt the planner to use the index on ids. And
# nothing is joined by the minute: without statistics, the planner would expect millions of rows,
# and use temporary files. The lock on rollup_state makes a new generation wait for our commit.
#
# A minute that a reconciliation asks for is replaced whatever its label, which may be wrong, too.
COMPUTE = """
    WITH mine AS MATERIALIZED (
        SELECT FROM rollup_state
        WHERE version >= (SELECT version FROM rollup_state ORDER BY version DESC LIMIT 1)
          AND generation = %(generation)s LIMIT 1 FOR SHARE
    ), settled AS MATERIALIZED (
        SELECT last_sent_id AS upto FROM streamer_state ORDER BY version DESC LIMIT 1
    ), wanted AS MATERIALIZED (
        SELECT minute FROM unnest(%(minutes)s::timestamptz[]) minute
    ), apart AS (
        SELECT minute,
               minute - lag(minute) OVER (ORDER BY minute) > interval '10 minutes' AS is_apart
        FROM wanted
    ), numbered AS (
        SELECT minute, count(*) FILTER (WHERE is_apart) OVER (ORDER BY minute) AS stretch
        FROM apart
    ), stretches AS MATERIALIZED (
        SELECT min(minute) AS first, max(minute) + interval '1 minute' AS until
        FROM numbered GROUP BY stretch
    ), counted AS (
        SELECT minute, rides, distance
        FROM stretches CROSS JOIN settled CROSS JOIN LATERAL (
            SELECT date_trunc('minute', created_at) AS minute,
                   count(*) FILTER (WHERE id > 0 AND id <= upto) AS rides,
                   sum(distance) FILTER (WHERE id > 0 AND id <= upto) AS distance
            FROM rides WHERE created_at >= first AND created_at < until GROUP BY 1
        ) within
    ), asked_for AS (
        UPDATE recomputations SET status = 'done', changed_at = now() FROM mine, wanted
        WHERE recomputations.minute = wanted.minute AND status <> 'done'
        RETURNING recomputations.minute
    ), put AS (
        INSERT INTO ride_minutes (minute, rides, distance, upto)
        SELECT minute, sum(rides)::bigint, coalesce(sum(distance), 0), upto
        FROM mine CROSS JOIN settled CROSS JOIN (
            SELECT minute, rides, distance, false AS is_wanted FROM counted
            UNION ALL SELECT minute, 0, 0, true FROM wanted
        ) each
        GROUP BY minute, upto HAVING bool_or(is_wanted)
        ON CONFLICT (minute) DO UPDATE
        SET rides = excluded.rides, distance = excluded.distance, upto = excluded.upto
        WHERE excluded.upto >= ride_minutes.upto
           OR ride_minutes.minute IN (SELECT minute FROM asked_for)
    ), no_longer_set_aside AS (
        DELETE FROM set_aside_minutes USING mine, wanted
        WHERE set_aside_minutes.minute = wanted.minute
    )
    SELECT (SELECT upto FROM settled) FROM mine
"""

# For the sessions that mark and compute. A new table has no statistics: the planner would scan it
# for a minute, and sort all of it for its first rides. And a statement of a process that is gone
# ends soon: the next leader waits for its locks.
SESSION = {
    "enable_seqscan": "off",
    "enable_sort": "off",
    "client_connection_check_interval": "2s",
}

# So that one hanging session, or one giant minute, can't keep all others waiting.
LIMITS = """
    SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true)
"""
LONGEST_LOCK = "1s"
# COMPUTE would meet a locked row only after it has counted the rides: of a giant minute, for long.
LOCK_ROW = "SELECT FROM ride_minutes WHERE minute = %s FOR NO KEY UPDATE"


def compute(
    connection: psycopg.Connection,
    generation: Generation,
    minutes: Sequence[str],
    limit: str = "60s",
) -> None:
    """Compute these minutes and store them, within `limit`. One that was set aside no longer is.

    Minutes and limit are written as Postgres writes them. Raises Overtaken, StateLost, or
    psycopg.Error: QueryCanceled when it takes longer, LockNotAvailable when a row stays locked.
    """
    values = {"generation": generation.name, "minutes": list(minutes)}
    with connection.transaction():
        connection.execute(LIMITS, [limit, LONGEST_LOCK])
        if len(minutes) == 1:
            connection.execute(LOCK_ROW, list(minutes))
        row = connection.execute(COMPUTE, values).fetchone()
        if row is None:
            raise overtaken()
        if row == (None,):
            raise StateLost
