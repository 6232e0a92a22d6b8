-- What the page asks Postgres, whole: one statement, one snapshot, one round trip, one JSON document.
--
-- The document has the names and the shapes of `facts.py`, `runs.py` and `kept.py`, which it is decoded
-- into; its numbers are Postgres' own digits. Nothing here reads more than `limit` rows of a table that
-- grows: what is counted is counted up to there, and an index leads to each row.
--
-- In psql, with the one parameter put in:
--
--     sed 's/%(limit)s/10000/g' watch/facts.sql | psql -AtX "$DATABASE_URL"
--     (echo EXPLAIN ANALYZE; sed 's/%(limit)s/10000/g' watch/facts.sql) | psql -AtX "$DATABASE_URL"
--
-- Names of sessions, numbers of locks and the 30 seconds of silence are Python's, too:
-- `tests/fast/test_statements.py` compares them.

WITH

-- All sessions of the fleet, by application name. One that is starting has not begun to work yet; a
-- silent one hangs, by the rule of `rocket_rides/health.py`. A session whose state Postgres hides from
-- this user does not count as silent.
known AS MATERIALIZED (
    SELECT pid, application_name AS name,
           right(application_name, 11) = ' (starting)' AS starting,
           (state = 'idle' AND state_change < now() - interval '30 seconds') IS TRUE AS silent
    FROM pg_stat_activity
    WHERE datname = current_database() AND split_part(application_name, ' ', 1)
          IN ('api', 'streamer', 'rollup', 'receipts', 'reader')
),
begun AS (SELECT * FROM known WHERE NOT starting),
sessions AS (SELECT pid, name FROM begun WHERE NOT silent),
held AS MATERIALIZED (
    SELECT objid::bigint AS number, pid FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 0 AND objsubid = 1 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
),
streamer AS (
    SELECT json_build_object(
        'leads', EXISTS (SELECT FROM held WHERE number = 7268001),
        'standbys', (SELECT count(*) FROM sessions WHERE name = 'streamer' AND NOT EXISTS (
            SELECT FROM held WHERE number = 7268001 AND held.pid = sessions.pid))
    ) AS told
),

-- Who holds the oldest snapshot: since when, if that is known, and for how many transactions. The leader
-- says who it is, by the same look (`unified_log/streamer/held_snapshots.py`).
snapshot AS (
    SELECT since, age(held) AS transactions FROM (
        SELECT held, xact_start AS since
        FROM pg_stat_activity CROSS JOIN LATERAL (VALUES (backend_xid), (backend_xmin)) own (held)
        WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
          AND backend_type NOT IN ('autovacuum worker', 'parallel worker')
          AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
        UNION ALL
        SELECT transaction, prepared FROM pg_prepared_xacts WHERE database = current_database()
        UNION ALL
        SELECT xmin, NULL FROM pg_replication_slots
    ) holders WHERE held IS NOT NULL ORDER BY age(held) DESC, since LIMIT 1
),

-- Records of all kinds that were staged. Their rate is that of the last ten seconds, or of the last
-- 500.
taken AS (
    SELECT json_build_object(
        'taken', records_sent + staged.count, 'newest', coalesce(newest.id, 0),
        'last_sent', last_sent_id, 'sent', records_sent, 'staged', staged.count,
        'oldest_staged_seconds', CASE
            WHEN isfinite(oldest.created_at)
            THEN greatest(0, extract(epoch FROM now() - oldest.created_at)) END,
        'per_second', CASE recent.rides
            WHEN 500 THEN recent.rides / greatest(0.001, recent.seconds)
            ELSE recent.rides / 10.0 END
    ) AS told
    FROM (SELECT * FROM streamer_state ORDER BY version DESC LIMIT 1) state
    CROSS JOIN (
        SELECT count(*), min(id) AS oldest
        FROM (SELECT id FROM staged_log_records ORDER BY id LIMIT %(limit)s) records
    ) staged
    LEFT JOIN log_records oldest ON oldest.id = staged.oldest
    LEFT JOIN (SELECT max(id) AS id FROM log_records) newest ON true
    CROSS JOIN (
        SELECT count(*) AS rides, extract(epoch FROM now() - min(created_at)) AS seconds
        FROM (SELECT created_at FROM log_records ORDER BY id DESC LIMIT 500) newest
        WHERE created_at > now() - interval '10 seconds' AND isfinite(created_at)
    ) recent
),

-- The receipts have no checkpoint: their lag is in `receipts_told`, not here. A reader that has counted
-- nothing for a minute has no latency.
readers AS (
    SELECT coalesce(json_agg(json_build_object(
        'kind', kind, 'name', name, 'types', types, 'processes', NULL,
        'ride', standings.position,
        'records_behind', records_behind, 'seconds_behind', seconds_behind,
        'total', total_distance, 'ratings', ratings, 'stars', stars,
        'recounts', recounts, 'held_out', held_out, 'dropped', dropped,
        'latency_seconds', CASE
            WHEN counted_at > now() - interval '60 seconds'
             AND isfinite(counted_at) AND isfinite(created_at)
            THEN greatest(0, extract(epoch FROM counted_at - created_at)) END,
        'counts', json_build_object(
            'gaps_healed', gaps_healed, 'records_healed', records_healed,
            'distance_healed', coalesce(distance_healed, 0), 'resends_skipped', resends_skipped,
            'entries_malformed', entries_malformed,
            'entries_ignored', entries_ignored, 'entries_passed', entries_passed,
            'crashes_injected', crashes_injected, 'resets_applied', resets_applied
        )
    ) ORDER BY kind, name), '[]') AS told
    FROM standings(%(limit)s) JOIN current_checkpoints USING (kind, name)
    LEFT JOIN LATERAL (
        SELECT total_distance, distance_healed FROM consumer_states state
        WHERE standings.kind = 'total' AND state.name = standings.name
        ORDER BY version DESC LIMIT 1
    ) total ON true
    LEFT JOIN LATERAL (
        SELECT ratings, stars FROM rating_sums state
        WHERE standings.kind = 'ratings' AND state.name = standings.name
        ORDER BY version DESC LIMIT 1
    ) rated ON true
    LEFT JOIN log_records record ON record.id = standings.position
),

-- Each total is brought back to `ride`, the lowest position at which any of them stands: the distance
-- of the rides that it has counted since is subtracted. One running sum over those rides, with the
-- totals among them, does that for all. A total is compared if it has reached `floor`: the ride that is
-- `limit` rides behind the first one, looked up only where ids alone don't show the answer. What a
-- total holds out is added to it; one that was asked to recount is not compared.
totals AS (
    SELECT name, position AS ride, total_distance + coalesce((
        SELECT sum(distance) FROM (
            SELECT held.position, held.type FROM held_out_records held
            WHERE (held.kind, held.name) = (reader.kind, reader.name)
              AND held.position <= reader.position
            LIMIT %(limit)s
        ) lacking JOIN rides ON rides.id = lacking.position WHERE lacking.type = ANY(types)
    ), 0) AS total
    FROM current_checkpoints reader CROSS JOIN LATERAL (
        SELECT total_distance FROM consumer_states state
        WHERE reader.kind = 'total' AND state.name = reader.name
        ORDER BY version DESC LIMIT 1
    ) total
    WHERE recount IS NOT TRUE
),
ends AS (SELECT min(ride) AS last, max(ride) AS first FROM totals),
reach AS (
    SELECT CASE WHEN first - last > %(limit)s THEN coalesce((
        SELECT id FROM rides WHERE id <= first ORDER BY id DESC OFFSET %(limit)s LIMIT 1
    ), 0) ELSE 0 END AS floor FROM ends
),
compared AS (SELECT * FROM totals WHERE ride >= (SELECT floor FROM reach)),
since AS (
    SELECT name, ride, total, 0 AS distance FROM compared
    UNION ALL
    SELECT NULL, id, NULL, distance FROM rides
    WHERE id > (SELECT min(ride) FROM compared) AND id <= (SELECT max(ride) FROM compared)
),
brought_back AS (
    SELECT name, ride, total - sum(distance) OVER (ORDER BY ride) AS total FROM since
),
agreement AS (
    SELECT json_build_object(
        'ride', min(ride),
        'totals', json_object_agg(name, total),
        'too_far_behind', (SELECT coalesce(json_agg(name ORDER BY name), '[]') FROM totals
                           WHERE ride < (SELECT floor FROM reach))
    ) AS told
    FROM brought_back WHERE name IS NOT NULL HAVING count(*) > 0
),

rollup AS (
    SELECT json_build_object(
        'lead', json_build_object(
            'leads', EXISTS (SELECT FROM held WHERE number = 7268005),
            'standbys', (SELECT count(*) FROM sessions WHERE name = 'rollup' AND NOT EXISTS (
                SELECT FROM held WHERE number = 7268005 AND held.pid = sessions.pid))
        ),
        'complete_to', coalesce((SELECT complete_to FROM rollup_state ORDER BY version DESC LIMIT 1), 0),
        'minutes_set_aside', (SELECT count(*) FROM (
            SELECT FROM set_aside_minutes LIMIT %(limit)s) minutes),
        'dirty_minutes', NULL
    ) AS told
),

-- What waits for a person is found by the index receipts_waiting, by its very words.
receipts_told AS (
    SELECT json_build_object(
        'workers', (SELECT count(DISTINCT name) FROM sessions
                    WHERE starts_with(name, 'receipts ')),
        'delivered', done.delivered, 'swept', done.swept, 'given_up', done.dead,
        'entries_ignored', done.entries_ignored, 'entries_malformed', done.entries_malformed,
        'entries_passed', done.entries_passed,
        'dead', (SELECT count(*) FROM (
            SELECT FROM receipts
            WHERE outcome = 'dead' AND dropped_at IS NULL AND replay_at IS NULL LIMIT %(limit)s
        ) letters),
        'being_sent_again', (SELECT count(*) FROM (
            SELECT FROM receipts WHERE replay_at IS NOT NULL LIMIT %(limit)s) marked),
        'pending', coalesce(lag.pending, 0), 'queued', coalesce(lag.queued, 0),
        'in_flight', coalesce(lag.in_flight, 0), 'waiting', coalesce(lag.waiting, 0),
        'oldest_undelivered_seconds', CASE
            WHEN isfinite(lag.oldest_at)
            THEN greatest(0, extract(epoch FROM now() - lag.oldest_at)) END,
        'newest_dead', (SELECT coalesce(json_agg(json_build_object(
            'ride', ride_id, 'attempts', attempts - excused, 'reason', coalesce(reason, ''),
            'since', decided_at
        ) ORDER BY ride_id DESC), '[]') FROM (
            SELECT * FROM receipts
            WHERE outcome = 'dead' AND dropped_at IS NULL AND replay_at IS NULL
            ORDER BY ride_id DESC LIMIT 20
        ) newest)
    ) AS told
    FROM receipts_done done LEFT JOIN receipts_lag(%(limit)s) lag ON true
),

-- Kind by kind, from the index alone.
malformed AS (
    WITH RECURSIVE kinds (kind) AS (
        SELECT min(consumer_kind) FROM malformed_entries
        UNION ALL
        SELECT (SELECT min(consumer_kind) FROM malformed_entries WHERE consumer_kind > kind)
        FROM kinds WHERE kind IS NOT NULL
    )
    SELECT coalesce(json_object_agg(kind, (SELECT count(*) FROM (
        SELECT FROM malformed_entries WHERE consumer_kind = kind LIMIT %(limit)s) entries)), '{}'
    ) AS told
    FROM kinds WHERE kind IS NOT NULL
),

-- The records that wait for a decision: few, or their readers would stand still.
undecided AS MATERIALIZED (
    SELECT * FROM held_out_records WHERE dropped_at IS NULL LIMIT %(limit)s
),
held_out AS (
    SELECT coalesce(json_agg(json_build_object(
        'kind', kind, 'name', name, 'position', position, 'type', type, 'reason', reason,
        'attempts', attempts, 'since', held_out_at, 'retry', retry
    ) ORDER BY held_out_at DESC, position DESC), '[]') AS told
    FROM (SELECT * FROM undecided ORDER BY held_out_at DESC, position DESC LIMIT 20) newest
),

-- The sums that the reconciliation has proven. OFFSET 0: or else the planner may look through all that
-- is pending.
proven_sums AS (
    SELECT coalesce(json_agg(json_build_object(
        'id', id, 'at', created_at, 'ride', position, 'rides', rides, 'total', total_distance,
        'drift', (
            SELECT coalesce(json_object_agg(name, drift), '{}')
            FROM jsonb_to_recordset(compared -> 'consumers')
                consumer(name text, drift numeric, recounts boolean)
            WHERE drift <> 0 AND recounts IS NOT TRUE
        ),
        'unrepaired', (
            SELECT coalesce(json_agg(consumer_name ORDER BY consumer_name), '[]') FROM (
                SELECT * FROM resets WHERE reconciliation_id = newest.id OFFSET 0
            ) asked WHERE status = 'pending'
        )
    ) ORDER BY id DESC), '[]') AS told
    FROM (SELECT * FROM reconciliations ORDER BY id DESC LIMIT 5) newest
),

-- The index runs_last_completed leads to it, however many runs have failed since.
last_completed AS MATERIALIZED (
    SELECT * FROM runs WHERE status IN ('agreed', 'wrong', 'held') ORDER BY id DESC LIMIT 1
),
findings AS MATERIALIZED (
    SELECT number, coalesce(finding ->> 'kind', '') AS kind,
           coalesce(finding ->> 'part', '') AS part,
           coalesce(finding -> 'held' = 'true', false) AS held,
           left(coalesce(finding ->> 'about', ''), 400) AS about
    FROM last_completed, jsonb_array_elements(findings) WITH ORDINALITY each (finding, number)
    LIMIT %(limit)s
),
completed_run AS (
    SELECT json_build_object(
        'id', id, 'status', status, 'at', ended_at, 'ride', position, 'verdicts', verdicts,
        'oldest_look', oldest_look,
        'findings', (
            SELECT coalesce(json_agg(json_build_object(
                'kind', kind, 'part', part, 'held', held, 'about', about
            ) ORDER BY held DESC, number), '[]')
            FROM (SELECT * FROM findings ORDER BY held DESC, number LIMIT 10) shown
        ),
        'open', (SELECT coalesce(json_object_agg(kind, count), '{}')
                 FROM (SELECT kind, count(*) FROM findings GROUP BY kind) kinds),
        'held', (SELECT count(*) FROM findings WHERE held),
        'approved', EXISTS (SELECT FROM approvals WHERE run_id = last_completed.id
                            AND used_by IS NULL)
    ) AS told
    FROM last_completed
),

-- Every run since the last completed one has failed, but for the newest, which may be under way.
failed AS MATERIALIZED (
    SELECT id, ended_at, reason FROM runs
    WHERE status = 'failed' AND id > coalesce((SELECT id FROM last_completed), 0)
    ORDER BY id DESC LIMIT %(limit)s
),
failed_run AS (
    SELECT json_build_object(
        'id', id, 'since', ended_at, 'reason', left(coalesce(reason, ''), 400)
    ) AS told
    FROM failed ORDER BY id DESC LIMIT 1
),
run_under_way AS (
    SELECT json_build_object('id', id, 'since', started_at) AS told
    FROM (SELECT * FROM runs ORDER BY id DESC LIMIT 1) newest WHERE status = 'running'
),

-- The rows of the last 15 minutes that `kept.py` has the words for, by the names and shapes that it
-- gives them.
kept AS (
    SELECT coalesce(json_agg(kept ORDER BY at), '[]') AS told
    FROM (
        (SELECT began_at AS at, json_build_object(
             'what', 'led', 'at', began_at, 'after', after) AS kept
         FROM terms ORDER BY after DESC LIMIT 20)
        UNION ALL
        (SELECT changed_at, json_build_object(
             'what', 'reset', 'at', changed_at, 'consumer', consumer_name,
             'run', reconciliation_id, 'before', from_total, 'now', to_total)
         FROM (SELECT * FROM resets ORDER BY id DESC LIMIT 20) newest
         WHERE status = 'applied')
        UNION ALL
        (SELECT created_at, json_build_object(
             'what', 'ran', 'at', created_at, 'run', id, 'rides', rides, 'total', total_distance)
         FROM reconciliations ORDER BY id DESC LIMIT 20)
        UNION ALL
        (SELECT ended_at, json_build_object(
             'what', 'faulted', 'at', ended_at, 'run', id, 'status', status,
             'reason', left(coalesce(reason, ''), 200))
         FROM (SELECT * FROM runs ORDER BY id DESC LIMIT 20) newest
         WHERE status NOT IN ('running', 'agreed'))
        UNION ALL
        (SELECT created_at, json_build_object(
             'what', 'malformed entry', 'at', created_at, 'kind', consumer_kind,
             'consumer', consumer_name, 'reason', left(reason, 200))
         FROM malformed_entries ORDER BY id DESC LIMIT 20)
        UNION ALL
        (SELECT held_out_at, json_build_object(
             'what', 'held out', 'at', held_out_at, 'kind', kind, 'consumer', name,
             'position', position, 'type', type, 'reason', left(reason, 200))
         FROM undecided ORDER BY held_out_at DESC LIMIT 20)
    ) newest
    WHERE at > now() - interval '15 minutes' AND at <= now()
)

SELECT json_build_object(
    -- Of the Ick that has the dirty minutes: not the column `generation`.
    'generation', coalesce((SELECT ick FROM rollup_state ORDER BY version DESC LIMIT 1), ''),
    'sessions', (SELECT coalesce(json_object_agg(name, count), '{}')
                 FROM (SELECT name, count(*) FROM sessions GROUP BY 1) named),
    'silent', (SELECT coalesce(json_object_agg(name, count), '{}')
               FROM (SELECT name, count(*) FROM begun WHERE silent GROUP BY 1) named),
    'at', now(),
    'database', json_build_object(
        'rides', (SELECT told FROM taken),
        'streamer', (SELECT told FROM streamer),
        'readers', (SELECT told FROM readers),
        'agreement', (SELECT told FROM agreement),
        'rollup', (SELECT told FROM rollup),
        'receipts', (SELECT told FROM receipts_told),
        'malformed_entries', (SELECT told FROM malformed),
        'held_out', (SELECT told FROM held_out),
        'reconciliations', (SELECT told FROM proven_sums),
        'completed_run', (SELECT told FROM completed_run),
        'failed_run', (SELECT told FROM failed_run),
        'failed_runs', (SELECT count(*) FROM failed),
        'run_under_way', (SELECT told FROM run_under_way),
        -- Since when there is something to reconcile.
        'oldest_ride_at', (
            SELECT CASE WHEN isfinite(created_at) THEN created_at END
            FROM rides ORDER BY id LIMIT 1
        ),
        'anybody', EXISTS (SELECT FROM known),
        'oldest_snapshot_seconds', CASE WHEN EXISTS (SELECT FROM snapshot) THEN (
            SELECT greatest(0, extract(epoch FROM now() - since)) FROM snapshot
            WHERE since IS NOT NULL
        ) ELSE 0 END,
        'oldest_snapshot_transactions', coalesce((SELECT transactions FROM snapshot), 0)
    ),
    'kept', (SELECT told FROM kept)
)::text;
