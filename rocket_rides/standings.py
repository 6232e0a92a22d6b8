"""All readers of the log in SQL: where each stands, and its lag, counted up to a limit.

They are the checkpoints, and the receipts, whose work is in Postgres, too: the consumer group that
shares it out among the workers is only in Redis, and so are groups that other programs make.

A lag costs the same however large it is: rides are counted up to the limit, and its seconds are the
age of the first ride that the reader lacks, which an index finds.
"""

from rocket_rides.log import LARGEST_ID

# What was trimmed, or lost with Redis, is still to be delivered. Up to `complete_to` every receipt
# has an outcome, and later ones may: while one is tried again, all those after it. So only the
# newest rides are looked at. EXCEPT reads each table once, where a join might look up one receipt
# after the other.
RECEIPTS_LAG = f"""
    SELECT pending, {LARGEST_ID} AS upto,
           CASE WHEN counted = %(limit)s THEN state.complete_to
                ELSE coalesce(first - 1, {LARGEST_ID}) END AS complete_to
    FROM receipts_state state CROSS JOIN LATERAL (
        WITH newest AS MATERIALIZED (
            SELECT id FROM rides WHERE id > state.complete_to ORDER BY id DESC LIMIT %(limit)s
        )
        SELECT (SELECT count(*) FROM newest) AS counted, count(*) AS pending, min(id) AS first
        FROM (
            SELECT id FROM newest
            EXCEPT ALL
            SELECT ride_id FROM receipts
            WHERE ride_id >= (SELECT min(id) FROM newest) AND outcome IS NOT NULL
        ) undecided
    ) newest
"""  # noqa: S608
# It lacks `pending` rides, all those after `upto`, and nothing up to `complete_to`. The rollup
# counts a ride when its minute is made, and not yet when its checkpoint is past it.
READERS = """
    SELECT kind, name, last_ride_id, last_redis_id, unbelieved_entries,
           0 AS pending, counted AS upto, counted AS complete_to
    FROM checkpoints CROSS JOIN LATERAL (
        SELECT CASE kind WHEN 'rollup' THEN (SELECT complete_to FROM rollup_state)
               ELSE last_ride_id END AS counted
    ) what
    UNION ALL
    SELECT 'group', 'receipts', (SELECT least(complete_to, last_sent_id) FROM streamer_state),
           NULL, NULL, pending, upto, complete_to
    FROM receipts_lag
"""
# The rides are counted once for all readers: those between each `upto` and the next higher one, its
# *step*; and added up once, from the last step down. `receipts_lag` is RECEIPTS_LAG, for statements
# that have it in a WITH of their own.
STANDINGS_GIVEN_RECEIPTS_LAG = f"""
    WITH readers AS MATERIALIZED (
        SELECT *, dense_rank() OVER (ORDER BY upto) AS step FROM ({READERS}) readers
    ),
    steps AS (SELECT array_agg(DISTINCT upto ORDER BY upto) AS uptos FROM readers),
    counts AS MATERIALIZED (
        SELECT width_bucket(id - 1, uptos) AS step, count(*) AS rides
        FROM steps CROSS JOIN LATERAL (
            SELECT id FROM rides WHERE id > uptos[1] ORDER BY id DESC LIMIT %(limit)s
        ) newest GROUP BY 1
    ),
    later AS MATERIALIZED (
        SELECT array_agg(rides ORDER BY step) AS rides FROM (
            SELECT step, sum(sum(rides)) OVER (ORDER BY step DESC)::bigint AS rides
            FROM (SELECT step, rides FROM counts UNION ALL SELECT step, 0 FROM readers) each
            GROUP BY step
        ) sums
    )
    SELECT kind, name, last_ride_id, last_redis_id, unbelieved_entries,
           least(%(limit)s, pending + (SELECT rides FROM later)[step]) AS rides_behind,
           CASE WHEN created_at IS NULL THEN 0
                WHEN isfinite(created_at)
                THEN greatest(0, round(extract(epoch FROM now() - created_at), 3))
           END AS seconds_behind
    FROM readers
    LEFT JOIN LATERAL (
        SELECT created_at FROM rides WHERE rides.id > complete_to ORDER BY rides.id LIMIT 1
    ) oldest ON true
"""  # noqa: S608
STANDINGS = f"""
    WITH receipts_lag AS MATERIALIZED ({RECEIPTS_LAG})
    SELECT * FROM ({STANDINGS_GIVEN_RECEIPTS_LAG}) standings
"""  # noqa: S608
