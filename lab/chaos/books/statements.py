"""What must hold of the tables. Each statement returns a sentence for each violation.

They add up the rides anew, in Postgres' exact decimals, and share nothing with the statements of
the services. A drift of the nemesis (`lab.chaos.drifts`) is no violation while it is there. The
outbox, and each step of a total, are judged by `lab.chaos.trace`.
"""

from lab.chaos.books import nightly
from lab.chaos.fleet import CONSUMERS

# Nothing is complete before the streamer has committed it. The rollup must also have marked it.
EARLY = """
    SELECT format('the rollup is complete to position %s, marked up to %s, and %s is the last sent',
                  complete_to, position, last_sent_id)
    FROM rollup_state, checkpoints, streamer_state
    WHERE kind = 'rollup' AND (complete_to > position OR position > last_sent_id)
    UNION ALL
    SELECT format('the inbox is complete to position %s, and %s is the last one sent',
                  inbox_to, last_sent_id)
    FROM receipts_state, streamer_state WHERE inbox_to > last_sent_id
"""
# A minute's row agrees with the minute's rides up to its label (`upto`).
MINUTES = """
    SELECT format('the minute %s says %s rides of %s m, not %s rides of %s m',
                  to_char(minute AT TIME ZONE 'UTC', 'HH24:MI'), rides, distance, number, exact)
    FROM (
        SELECT ride_minutes.*, count(ride.id) AS number,
               coalesce(sum(ride.distance), 0.000) AS exact
        FROM ride_minutes LEFT JOIN rides ride
        ON date_trunc('minute', ride.created_at, 'UTC') = minute AND ride.id <= upto
        GROUP BY minute
    ) minutes
    WHERE (rides, distance) <> (number, exact) AND NOT EXISTS (
        SELECT FROM chaos.known_drifts
        WHERE is_there AND (kind, victim) = ('minute', minute::text)
    )
"""
# Up to complete_to, each ride is in its minute; and no label is past last_sent.
COMPLETE_MINUTES = """
    SELECT format('ride %s is not in the minute %s, and the rollup is complete to position %s',
                  id, to_char(created_at AT TIME ZONE 'UTC', 'HH24:MI'), complete_to)
    FROM rollup_state, rides
    LEFT JOIN ride_minutes ON minute = date_trunc('minute', created_at, 'UTC')
    WHERE id <= complete_to AND (upto IS NULL OR upto < id)
    UNION ALL
    SELECT format('the minute %s is labelled %s, which was never sent',
                  to_char(minute AT TIME ZONE 'UTC', 'HH24:MI'), upto)
    FROM ride_minutes, streamer_state WHERE upto > last_sent_id
"""
# Up to inbox_to, each ride is in the inbox; up to complete_to, it has its outcome. No attempt came
# before its ride was sent.
COMPLETE_RECEIPTS = """
    SELECT format('ride %s has no outcome, and receipts are complete to %s', id, complete_to)
    FROM receipts_state, rides LEFT JOIN receipts ON ride_id = id
    WHERE id <= complete_to AND outcome IS NULL AND NOT EXISTS (
        SELECT FROM chaos.drifts WHERE (kind, victim) = ('outcome', id::text)
    )
    UNION ALL
    SELECT format('ride %s is not in the inbox, which is complete to position %s', id, inbox_to)
    FROM receipts_state, rides LEFT JOIN receipts ON ride_id = id
    WHERE id <= inbox_to AND ride_id IS NULL AND NOT EXISTS (
        SELECT FROM chaos.drifts WHERE (kind, victim) = ('outcome', id::text)
    )
    UNION ALL
    SELECT format('there is a receipt of ride %s, which does not exist', ride_id)
    FROM receipts LEFT JOIN rides ON id = ride_id WHERE id IS NULL
    UNION ALL
    SELECT format('there was an attempt to deliver ride %s, which was never sent', ride_id)
    FROM receipts, streamer_state
    WHERE ride_id > last_sent_id AND (attempts > 0 OR outcome IS NOT NULL)
"""
# An attempt has failed, does not count (excused), or has no known end (unfinished). Where there is
# a lease, there is an unfinished attempt, and what is decided has none.
ATTEMPTS = """
    SELECT format('ride %s has had %s attempts, but %s do not count, and %s have no known end',
                  ride_id, attempts, excused, unfinished)
    FROM receipts WHERE excused + unfinished > attempts
    UNION ALL
    SELECT format('the receipt of ride %s is leased, and nobody makes an attempt', ride_id)
    FROM receipts WHERE lease IS NOT NULL AND unfinished = 0
    UNION ALL
    SELECT format('the receipt of ride %s is %s, and still leased', ride_id, outcome)
    FROM receipts WHERE outcome IS NOT NULL AND replay_at IS NULL AND lease IS NOT NULL
"""
# A total, and a consumer of ratings, has all up to where it stands, less what it holds out.
TOTALS = """
    SELECT format('%s has %s m in %s rides, not %s in %s', name, total_distance, rides, sum, number)
    FROM consumer_states state JOIN checkpoints USING (kind, name) CROSS JOIN LATERAL (
        SELECT count(*) AS number, coalesce(sum(distance), 0) AS sum
        FROM rides LEFT JOIN held_out_records held
        ON (held.kind, held.name, held.position) = (state.kind, state.name, id)
        WHERE id <= checkpoints.position AND held.position IS NULL
    ) exact WHERE (rides, total_distance) <> (number, sum + (
        SELECT 0.001 * count(*) FROM chaos.known_drifts drift
        WHERE is_there AND (drift.kind, victim) = (state.kind, state.name)
    ))
"""
RATINGS = """
    SELECT format('%s has %s stars in %s ratings, not %s in %s', name, stars, ratings, sum, number)
    FROM rating_sums state JOIN checkpoints USING (kind, name) CROSS JOIN LATERAL (
        SELECT count(*) AS number, coalesce(sum(rating.stars), 0) AS sum
        FROM ratings rating LEFT JOIN held_out_records held
        ON (held.kind, held.name, held.position) = (state.kind, state.name, id)
        WHERE id <= checkpoints.position AND held.position IS NULL
    ) exact WHERE (ratings, stars) <> (number, sum)
"""
# What is held out is a record, which the consumer has passed.
HELD_OUT = """
    SELECT format('%s holds %s %s out, and stands at %s', name, held.type, held.position,
                  checkpoints.position)
    FROM held_out_records held JOIN checkpoints USING (kind, name)
    LEFT JOIN log_records record ON record.id = held.position AND record.type = held.type
    WHERE held.position > checkpoints.position OR record.id IS NULL
"""
# Counts agree with the tables: both are written in the same transactions.
COUNTS = """
    SELECT format('the streamer counts %s records sent of %s', records_sent, sent)
    FROM streamer_state, LATERAL (
        SELECT count(*) AS sent FROM log_records WHERE id <= last_sent_id
    ) records WHERE records_sent <> sent
    UNION ALL
    SELECT format('%s counts %s malformed entries of %s', name, entries_malformed, number)
    FROM checkpoints, LATERAL (
        SELECT count(*) AS number FROM malformed_entries
        WHERE (consumer_kind, consumer_name) = (kind, name)
    ) entries WHERE entries_malformed <> number
    UNION ALL
    SELECT format('%s counts %s resets applied of %s', name, resets_applied, number)
    FROM checkpoints, LATERAL (
        SELECT count(*) AS number FROM resets
        WHERE (consumer_kind, consumer_name, status) = (kind, name, 'applied')
    ) applied WHERE kind = 'total' AND resets_applied <> number
    UNION ALL
    SELECT format('workers count %s receipts %s of %s', coalesce(counted, 0), outcome, number)
    FROM (
        SELECT outcome, counted, (
            SELECT count(*) FROM receipts WHERE receipts.outcome = ended.outcome
        ) + (
            -- those that the nemesis has deleted: each is decided once more
            SELECT count(*) FROM chaos.drifts WHERE (kind, mark) = ('outcome', ended.outcome)
        ) AS number
        FROM (
            SELECT 'delivered' AS outcome, sum(delivered) AS counted FROM receipts_workers
            UNION ALL SELECT 'dead', sum(dead) FROM receipts_workers
        ) ended
    ) counts WHERE coalesce(counted, 0) <> number
"""
AT_ANY_MOMENT = (
    *(EARLY, MINUTES, COMPLETE_MINUTES, COMPLETE_RECEIPTS, ATTEMPTS, TOTALS, RATINGS),
    *(HELD_OUT, COUNTS),
    *nightly.AT_ANY_MOMENT,
)

# When nothing is left to do, every consumer stands at the last record, and nothing is malformed.
COUNTED = """
    WITH newest AS (
        SELECT coalesce(max(id), cell_start()) AS position FROM log_records
    ), stands AS (
        SELECT 'the last record sent' AS what, last_sent_id AS at FROM streamer_state
        UNION ALL SELECT name || '''s position', position FROM checkpoints
        WHERE kind IN ('total', 'ratings')
    )
    SELECT format('%s is %s, not %s', what, at, position) FROM stands, newest WHERE at <> position
"""
# Without any total, the statement above finds nothing.
ALL_TOTALS = f"""
    SELECT format('there are %s totals, not %s', count(*), {len(CONSUMERS)})
    FROM checkpoints WHERE kind = 'total' HAVING count(*) <> {len(CONSUMERS)}
"""  # noqa: S608
ROLLED_UP = """
    SELECT format('the rollup is complete to position %s, not %s', complete_to, newest)
    FROM rollup_state, (SELECT coalesce(max(id), cell_start()) AS newest FROM log_records) sent
    WHERE complete_to <> newest
"""
ASKED = """
    SELECT format('a reset of %s is pending', consumer_name) FROM resets WHERE status = 'pending'
    UNION ALL
    SELECT format('the minute %s is to be computed anew', minute)
    FROM recomputations WHERE status = 'pending'
"""
ALL_ACCEPTED = """
    SELECT format('%s holds %s %s out: %s', name, type, position, reason) FROM held_out_records
"""
DELIVERED = """
    SELECT format('receipts are complete to position %s, not %s', complete_to, newest)
    FROM receipts_state, (SELECT coalesce(max(id), cell_start()) AS newest FROM log_records) sent
    WHERE complete_to <> newest
    UNION ALL
    SELECT format('the receipt of ride %s is still to be sent', ride_id)
    FROM receipts WHERE outcome IS NULL OR replay_at IS NOT NULL
"""
SET_ASIDE = """
    SELECT format('%s met a malformed entry, %s: %s', consumer_name, redis_id, reason)
    FROM malformed_entries
    UNION ALL
    SELECT format('the minute %s was set aside: %s',
                  to_char(minute AT TIME ZONE 'UTC', 'HH24:MI'), reason) FROM set_aside_minutes
"""
# The receiver refuses every hundredth distance for good, and no other.
OUTCOMES = """
    SELECT format('the receipt of ride %s is %s, and was not meant to be', id, outcome)
    FROM rides JOIN receipts ON ride_id = id
    WHERE (outcome = 'dead') <> (distance % 100.900 = 0)
"""
NOTHING_IS_LEFT = (COUNTED, ALL_TOTALS, ROLLED_UP, ASKED, ALL_ACCEPTED, DELIVERED)
WHEN_SETTLED = (*AT_ANY_MOMENT, *NOTHING_IS_LEFT, SET_ASIDE, OUTCOMES, *nightly.AT_THE_END)
