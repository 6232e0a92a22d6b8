"""The statements that make a drift, and that ask whether it is there. Each is one snapshot."""

SCHEMA = "CREATE SCHEMA chaos"
TABLE = """
    CREATE TABLE chaos.drifts (
        token text PRIMARY KEY,
        kind text NOT NULL,
        victim text NOT NULL,  -- a consumer, the beginning of a minute, or a ride
        mark text NOT NULL,  -- resets applied so far; the minute's false figures; the lost outcome
        last_ride_id bigint NOT NULL DEFAULT 0  -- where the consumer stood
    )
"""
VIEW = """
    CREATE VIEW chaos.known_drifts AS SELECT *, CASE kind
        WHEN 'total' THEN EXISTS (
            SELECT FROM checkpoints
            WHERE (checkpoints.kind, name, resets_applied::text) = ('total', victim, mark)
        )
        WHEN 'minute' THEN EXISTS (
            SELECT FROM ride_minutes WHERE minute = victim::timestamptz
            AND concat_ws('/', rides, distance, upto) = mark
        )
        ELSE NOT EXISTS (
            SELECT FROM receipts WHERE ride_id = victim::bigint AND outcome IS NOT NULL
        )
    END AS is_there FROM chaos.drifts
"""
# By the newest runs that say so: the next one goes on from there.
PROVED = """
    SELECT coalesce((
        SELECT (compared #>> '{rollup,proved_upto}')::bigint FROM reconciliations
        WHERE compared #> '{rollup,proved_upto}' IS NOT NULL ORDER BY id DESC LIMIT 1
    ), 0), coalesce((
        SELECT (compared #>> '{receipts,proved_upto}')::bigint FROM reconciliations
        WHERE compared #> '{receipts,proved_upto}' IS NOT NULL ORDER BY id DESC LIMIT 1
    ), 0)
"""
WRONG_TOTAL = """
    WITH victim AS (
        SELECT name, resets_applied, last_ride_id FROM checkpoints
        WHERE kind = 'total' AND name = %(victim)s AND NOT EXISTS (
            SELECT FROM chaos.known_drifts WHERE is_there AND (kind, victim) = ('total', name)
        )
        FOR UPDATE
    ), changed AS (
        UPDATE consumer_states SET total_distance = total_distance + 0.001 FROM victim
        WHERE consumer_states.name = victim.name
    )
    INSERT INTO chaos.drifts SELECT %(token)s, 'total', name, resets_applied, last_ride_id
    FROM victim RETURNING victim, mark
"""
# One of those that are over, and that the rollup calls right. Never the same figures twice: the
# first drift would seem to be there again.
WRONG_MINUTE = """
    WITH victim AS (
        SELECT minute FROM ride_minutes CROSS JOIN rollup_state
        WHERE minute < (SELECT max(minute) FROM ride_minutes) AND upto <= complete_to
          AND NOT EXISTS (
            SELECT FROM chaos.known_drifts WHERE (kind, victim) = (
                'minute', to_char(minute AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            ) AND (is_there OR mark = concat_ws(
                '/', rides + %(rides)s::int, distance + %(distance)s::numeric, upto
            ))
        )
        ORDER BY md5(concat(minute, %(token)s::text)) LIMIT 1 FOR UPDATE OF ride_minutes
    ), changed AS (
        UPDATE ride_minutes
        SET rides = rides + %(rides)s::int, distance = distance + %(distance)s::numeric
        FROM victim WHERE ride_minutes.minute = victim.minute
        RETURNING ride_minutes.*
    )
    INSERT INTO chaos.drifts
    SELECT %(token)s, 'minute', to_char(minute AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
           concat_ws('/', rides, distance, upto)
    FROM changed RETURNING victim, mark
"""
# For the same reason, never the same ride's twice.
LOST_OUTCOME = """
    WITH victim AS (
        SELECT ride_id, outcome FROM receipts CROSS JOIN receipts_state
        WHERE ride_id > %(after)s AND ride_id <= complete_to AND outcome IS NOT NULL
          AND ride_id::text NOT IN (SELECT victim FROM chaos.drifts WHERE kind = 'outcome')
        ORDER BY md5(concat(ride_id, %(token)s::text)) LIMIT 1 FOR UPDATE OF receipts
    ), gone AS (
        DELETE FROM receipts USING victim WHERE receipts.ride_id = victim.ride_id
    )
    INSERT INTO chaos.drifts SELECT %(token)s, 'outcome', ride_id, outcome FROM victim
    RETURNING victim, mark
"""
# Whether a drift is there; and whether a night that compared the minutes up to one ride, and the
# receipts up to another, and had proved so much before, had to come across it: of a minute, when
# none of its rides was yet to come, and when its day had rides that were new.
LOOK = """
    SELECT token, is_there, is_there AND CASE kind
        WHEN 'total' THEN true
        WHEN 'outcome' THEN victim::bigint > %(receipts_after)s
                        AND victim::bigint <= %(receipts_upto)s
        ELSE NOT EXISTS (
            SELECT FROM rides WHERE id > %(minutes_upto)s
            AND created_at >= victim::timestamptz
            AND created_at < victim::timestamptz + interval '1 minute'
        ) AND EXISTS (
            SELECT FROM rides WHERE id > %(minutes_after)s AND id <= %(minutes_upto)s
            AND date_trunc('day', created_at, 'UTC')
                = date_trunc('day', victim::timestamptz, 'UTC')
        ) AND NOT EXISTS (SELECT FROM set_aside_minutes WHERE minute = victim::timestamptz)
    END FROM chaos.known_drifts
"""
FINAL = "SELECT kind, victim, mark, last_ride_id, is_there FROM chaos.known_drifts"
