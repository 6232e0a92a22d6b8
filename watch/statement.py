"""What Postgres is asked, in one statement: one snapshot, one round trip, one JSON document.

The document has the names and the shapes of `watch.facts`, `watch.runs` and `watch.kept`, which it
is decoded into; its numbers are Postgres' own digits. Nothing here reads more than `limit` rows of
a table that grows: what is counted is counted up to there, and an index leads to each row.
"""

from rocket_rides.health import SILENCE
from rocket_rides.locks import Lock
from rocket_rides.sessions import API, RECEIPTS, ROLLUP
from rocket_rides.standings import RECEIPTS_LAG, STANDINGS_GIVEN_RECEIPTS_LAG
from unified_log.sessions import READER, STARTING, STREAMER
from watch.derived import (
    KEPT,
    MALFORMED_ENTRIES,
    NEWEST_HELD_OUT,
    RECEIPTS_FACTS,
    ROLLUP_FACTS,
    age,
    lead,
)
from watch.reconciled import (
    COMPLETED_RUN,
    FAILED_RUN,
    FAILED_RUNS,
    PROVEN_SUMS,
    RUN_UNDER_WAY,
)

RATE_SECONDS, RATE_RIDES = 10, 500  # the rate is over so many seconds, or so many rides
LATENCY_SECONDS = 60  # a reader that has counted nothing for so long has no latency

# Since when there is something to reconcile.
OLDEST_RIDE_AT = """
    SELECT CASE WHEN isfinite(created_at) THEN created_at END FROM rides ORDER BY id LIMIT 1
"""

# All sessions of the fleet, by application name. One that is starting has not begun to work yet; a
# silent one hangs, by the rule of `rocket_rides.health`. A session whose state Postgres hides from
# this user does not count as silent.
SESSIONS = f"""
    SELECT pid, application_name AS name,
           right(application_name, {len(STARTING)}) = '{STARTING}' AS starting,
           (state = 'idle' AND state_change < now() - interval '{SILENCE} seconds') IS TRUE
           AS silent
    FROM pg_stat_activity
    WHERE datname = current_database() AND split_part(application_name, ' ', 1)
          IN ('{API}', '{STREAMER}', '{ROLLUP}', '{RECEIPTS.strip()}', '{READER.strip()}')
"""  # noqa: S608 (no value is put in)
HELD = """
    SELECT objid::bigint AS number, pid FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 0 AND objsubid = 1 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

RIDES = f"""
    SELECT json_build_object(
        'taken', records_sent + staged.count, 'newest', coalesce(newest.id, 0),
        'last_sent', last_sent_id, 'sent', records_sent, 'staged', staged.count,
        'oldest_staged_seconds', {age("oldest.created_at")},
        'per_second', CASE recent.rides
            WHEN {RATE_RIDES} THEN recent.rides / greatest(0.001, recent.seconds)
            ELSE recent.rides / {RATE_SECONDS}.0 END
    )
    FROM streamer_state
    CROSS JOIN (
        SELECT count(*), min(id) AS oldest
        FROM (SELECT id FROM staged_log_records ORDER BY id LIMIT %(limit)s) records
    ) staged
    LEFT JOIN log_records oldest ON oldest.id = staged.oldest
    LEFT JOIN (SELECT max(id) AS id FROM log_records) newest ON true
    CROSS JOIN (
        SELECT count(*) AS rides, extract(epoch FROM now() - min(created_at)) AS seconds
        FROM (SELECT created_at FROM log_records ORDER BY id DESC LIMIT {RATE_RIDES}) newest
        WHERE created_at > now() - interval '{RATE_SECONDS} seconds' AND isfinite(created_at)
    ) recent
"""  # noqa: S608
# The receipts have no checkpoint: their lag is in RECEIPTS_FACTS, not here.
READERS = f"""
    SELECT coalesce(json_agg(json_build_object(
        'kind', kind, 'name', name, 'types', types, 'processes', NULL, 'ride', standings.position,
        'records_behind', records_behind, 'seconds_behind', seconds_behind, 'total', total_distance,
        'ratings', ratings, 'stars', stars, 'recounts', recounts, 'held_out', held_out,
        'dropped', dropped,
        'latency_seconds', CASE
            WHEN counted_at > now() - interval '{LATENCY_SECONDS} seconds'
             AND isfinite(counted_at) AND isfinite(created_at)
            THEN greatest(0, extract(epoch FROM counted_at - created_at)) END,
        'counts', json_build_object(
            'gaps_healed', gaps_healed, 'records_healed', records_healed,
            'distance_healed', coalesce(distance_healed, 0), 'resends_skipped', resends_skipped,
            'entries_malformed', entries_malformed,
            'entries_not_ours', checkpoints.entries_not_ours, 'entries_passed', entries_passed,
            'crashes_injected', crashes_injected, 'resets_applied', resets_applied
        )
    ) ORDER BY kind, name), '[]')
    FROM standings JOIN checkpoints USING (kind, name)
    LEFT JOIN consumer_states USING (kind, name) LEFT JOIN rating_sums USING (kind, name)
    LEFT JOIN log_records record ON record.id = checkpoints.position
"""  # noqa: S608
# Each total is brought back to `ride`, the lowest position at which any of them stands: the
# distance of the rides that it has counted since is subtracted. One running sum over those rides,
# with the totals among them, does that for all. A total is compared if it has reached `floor`:
# the ride that is `limit` rides behind the first one, looked up only where ids alone don't show the
# answer. What a total holds out is added to it; one that was asked to recount is not compared.
AGREEMENT = """
    WITH totals AS (
        SELECT name, position AS ride, total_distance + coalesce((
            SELECT sum(distance) FROM (
                SELECT held.position, held.type FROM held_out_records held
                WHERE (held.kind, held.name) = (checkpoints.kind, checkpoints.name)
                  AND held.position <= checkpoints.position
                LIMIT %(limit)s
            ) lacking JOIN rides ON rides.id = lacking.position WHERE lacking.type = ANY(types)
        ), 0) AS total
        FROM checkpoints JOIN consumer_states USING (kind, name)
        WHERE recount IS NOT TRUE
    ),
    ends AS (SELECT min(ride) AS last, max(ride) AS first FROM totals),
    reach AS (SELECT CASE WHEN first - last > %(limit)s THEN coalesce((
        SELECT id FROM rides WHERE id <= first ORDER BY id DESC OFFSET %(limit)s LIMIT 1
    ), 0) ELSE 0 END AS floor FROM ends),
    compared AS (SELECT * FROM totals WHERE ride >= (SELECT floor FROM reach)),
    since AS (
        SELECT name, ride, total, 0 AS distance FROM compared
        UNION ALL
        SELECT NULL, id, NULL, distance FROM rides
        WHERE id > (SELECT min(ride) FROM compared) AND id <= (SELECT max(ride) FROM compared)
    ),
    brought_back AS (
        SELECT name, ride, total - sum(distance) OVER (ORDER BY ride) AS total FROM since
    )
    SELECT json_build_object(
        'ride', min(ride),
        'totals', json_object_agg(name, total),
        'too_far_behind', (SELECT coalesce(json_agg(name ORDER BY name), '[]') FROM totals
                           WHERE ride < (SELECT floor FROM reach))
    )
    FROM brought_back WHERE name IS NOT NULL HAVING count(*) > 0
"""

FACTS = f"""
    WITH known AS MATERIALIZED ({SESSIONS}),
    begun AS (SELECT * FROM known WHERE NOT starting),
    sessions AS (SELECT pid, name FROM begun WHERE NOT silent), held AS MATERIALIZED ({HELD}),
    receipts_lag AS MATERIALIZED ({RECEIPTS_LAG}),
    standings AS MATERIALIZED ({STANDINGS_GIVEN_RECEIPTS_LAG})
    SELECT json_build_object(
        'generation', coalesce((SELECT ick FROM rollup_state), ''),
        'sessions', (SELECT coalesce(json_object_agg(name, count), '{{}}')
                     FROM (SELECT name, count(*) FROM sessions GROUP BY 1) named),
        'silent', (SELECT coalesce(json_object_agg(name, count), '{{}}')
                   FROM (SELECT name, count(*) FROM begun WHERE silent GROUP BY 1) named),
        'at', now(),
        'database', json_build_object(
            'rides', ({RIDES}), 'streamer', {lead(STREAMER, Lock.LEADER)},
            'readers', ({READERS}), 'agreement', ({AGREEMENT}), 'rollup', ({ROLLUP_FACTS}),
            'receipts', ({RECEIPTS_FACTS}), 'malformed_entries', ({MALFORMED_ENTRIES}),
            'held_out', ({NEWEST_HELD_OUT}),
            'reconciliations', ({PROVEN_SUMS}), 'completed_run', ({COMPLETED_RUN}),
            'failed_run', ({FAILED_RUN}), 'failed_runs', ({FAILED_RUNS}),
            'run_under_way', ({RUN_UNDER_WAY}), 'oldest_ride_at', ({OLDEST_RIDE_AT}),
            'anybody', EXISTS (SELECT FROM known)
        ),
        'kept', ({KEPT})
    )::text
"""  # noqa: S608
