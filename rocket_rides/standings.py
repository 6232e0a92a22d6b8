"""All readers of the log in SQL: where each stands, and its lag, counted up to a limit.

They are the checkpoints and the receipts, whose lag comes from their queue in Postgres. Consumer
groups are only in Redis, so none is here: neither the receipts' own nor other programs'.

A lag is in records of whatever kind, since a reader has to pass those that it does not handle; that
of the receipts is in rides. It costs the same however large it is: records are counted up to the
limit, and its seconds are the age of the first one that the reader lacks, which an index finds.
"""

from rocket_rides.receipts import STATE
from rocket_rides.recounting import RECOUNTS
from rocket_rides.words import IN_FLIGHT, QUEUED, WAITING
from unified_log.log import LARGEST_ID


def held_out(which: str) -> str:
    """How many records a checkpoint's reader holds out, up to the limit, `which` are so."""
    return f"""(SELECT count(*) FROM (
        SELECT FROM held_out_records held
        WHERE (held.kind, held.name) = (checkpoints.kind, checkpoints.name) AND {which}
        LIMIT %(limit)s
    ) counted)"""  # noqa: S608


# The open receipts in the queue: those that are due, those that are due later, and those that are
# quarantined, up to the limit each. An index finds each. Replayed dead letters are among them.
#
# None of them fell due before the first ride without an outcome was taken, or the first dead letter
# was replayed: so the look starts there. While a snapshot is held elsewhere, the index keeps an
# entry of every row that was ever due, and a look from its start would read them all.
OPEN = "(outcome IS NULL OR replay_at IS NOT NULL)"
DUE_SINCE = """
    least((SELECT created_at FROM rides WHERE id > (SELECT complete_to FROM receipts_state)
           ORDER BY id LIMIT 1),
          (SELECT min(replay_at) FROM receipts WHERE replay_at IS NOT NULL),
          now()) - interval '1 minute'
"""
OPEN_RECEIPTS = f"""
    (SELECT ride_id, outcome, {STATE} AS state FROM receipts
     WHERE {OPEN} AND unfinished < 2 AND due_at BETWEEN {DUE_SINCE} AND now()
     ORDER BY due_at LIMIT %(limit)s)
    UNION ALL
    (SELECT ride_id, outcome, {STATE} FROM receipts
     WHERE {OPEN} AND unfinished < 2 AND due_at > now() ORDER BY due_at LIMIT %(limit)s)
    UNION ALL
    (SELECT ride_id, outcome, {STATE} FROM receipts
     WHERE {OPEN} AND unfinished >= 2 ORDER BY unfinished, due_at LIMIT %(limit)s)
"""  # noqa: S608
# The lag of the receipts is the rides without an outcome: those that are open in the queue, and
# those that have yet to come into the inbox, of which there are none up to `inbox_to`. EXCEPT reads
# each table once, where a join might look up one receipt after the other.
#
# If more are open than one look counts, the oldest is taken to be the first after `complete_to`. If
# more rides than that are above `inbox_to`, only the newest are looked at: older ones which a loss
# of the log kept from the inbox are not counted until the sweep has found them.
RECEIPTS_LAG = f"""
    WITH newest AS MATERIALIZED (
        SELECT id FROM rides WHERE id > (SELECT inbox_to FROM receipts_state)
        ORDER BY id DESC LIMIT %(limit)s
    ), arriving AS (
        SELECT count(*) AS rides, min(id) AS first FROM (
            SELECT id FROM newest
            EXCEPT ALL
            SELECT ride_id FROM receipts WHERE ride_id >= (SELECT min(id) FROM newest)
        ) rides
    ), queue AS (
        SELECT count(*) FILTER (WHERE outcome IS NULL) AS rides,
               min(ride_id) FILTER (WHERE outcome IS NULL) AS first,
               count(*) FILTER (WHERE state = '{QUEUED}') AS queued,
               count(*) FILTER (WHERE state = '{IN_FLIGHT}') AS in_flight,
               count(*) FILTER (WHERE state = '{WAITING}') AS waiting
        FROM ({OPEN_RECEIPTS}) receipts
    )
    SELECT least(%(limit)s, arriving.rides + queue.rides) AS pending,
           arriving.rides + queued AS queued, in_flight, waiting, {LARGEST_ID} AS upto,
           CASE WHEN arriving.rides + queue.rides >= %(limit)s THEN state.complete_to
                ELSE coalesce(least(arriving.first, queue.first) - 1, {LARGEST_ID}) END
           AS complete_to
    FROM receipts_state state CROSS JOIN arriving CROSS JOIN queue
"""  # noqa: S608
# A reader lacks `pending` records and all those after `upto`, and none up to `complete_to`. The
# rollup has counted a ride when its minute is computed, not when its checkpoint has passed it.
READERS = f"""
    SELECT kind, name, position, last_redis_id, entries_not_ours,
           {RECOUNTS} AS recounts, {held_out("dropped_at IS NULL")} AS held_out,
           {held_out("dropped_at IS NOT NULL")} AS dropped,
           0 AS pending, counted AS upto, counted AS complete_to
    FROM checkpoints CROSS JOIN LATERAL (
        SELECT CASE kind WHEN 'rollup' THEN (SELECT complete_to FROM rollup_state)
               ELSE position END AS counted
    ) what
    UNION ALL
    SELECT 'group', 'receipts', (SELECT least(complete_to, last_sent_id) FROM streamer_state),
           NULL, (SELECT coalesce(sum(entries_not_ours), 0)::bigint FROM receipts_workers),
           false, 0, 0, pending, upto, complete_to
    FROM receipts_lag
"""  # noqa: S608
# The records are counted once for all readers, in *steps*: each is from one `upto` to the next
# higher one. The steps are then added up once, from the last one down. `receipts_lag` is
# RECEIPTS_LAG, for statements that have it in a WITH of their own.
STANDINGS_GIVEN_RECEIPTS_LAG = f"""
    WITH readers AS MATERIALIZED (
        SELECT *, dense_rank() OVER (ORDER BY upto) AS step FROM ({READERS}) readers
    ),
    steps AS (SELECT array_agg(DISTINCT upto ORDER BY upto) AS uptos FROM readers),
    counts AS MATERIALIZED (
        SELECT width_bucket(id - 1, uptos) AS step, count(*) AS records
        FROM steps CROSS JOIN LATERAL (
            SELECT id FROM log_records WHERE id > uptos[1] ORDER BY id DESC LIMIT %(limit)s
        ) newest GROUP BY 1
    ),
    later AS MATERIALIZED (
        SELECT array_agg(records ORDER BY step) AS records FROM (
            SELECT step, sum(sum(records)) OVER (ORDER BY step DESC)::bigint AS records
            FROM (SELECT step, records FROM counts UNION ALL SELECT step, 0 FROM readers) each
            GROUP BY step
        ) sums
    )
    SELECT kind, name, position, last_redis_id, entries_not_ours, recounts, held_out, dropped,
           least(%(limit)s, pending + (SELECT records FROM later)[step]) AS records_behind,
           CASE WHEN created_at IS NULL THEN 0
                WHEN isfinite(created_at)
                THEN greatest(0, round(extract(epoch FROM now() - created_at), 3))
           END AS seconds_behind
    FROM readers
    LEFT JOIN LATERAL (
        SELECT created_at FROM log_records record WHERE record.id > complete_to
        ORDER BY record.id LIMIT 1
    ) oldest ON true
"""  # noqa: S608
STANDINGS = f"""
    WITH receipts_lag AS MATERIALIZED ({RECEIPTS_LAG})
    SELECT * FROM ({STANDINGS_GIVEN_RECEIPTS_LAG}) standings
"""  # noqa: S608
