"""The parts of the statement on what is derived from the rides: rollup, receipts, events."""

from rocket_rides.locks import Lock
from rocket_rides.receipts import WAITS_FOR_A_DECISION
from rocket_rides.sessions import RECEIPTS, ROLLUP

NEWEST = 20  # dead receipts, held-out records, and events of each kind
RECENTLY = "15 minutes"


def lead(name: str, lock: Lock) -> str:
    return f"""
        json_build_object(
            'leads', EXISTS (SELECT FROM held WHERE number = {lock:d}),
            'standbys', (SELECT count(*) FROM sessions WHERE name = '{name}' AND NOT EXISTS (
                SELECT FROM held WHERE number = {lock:d} AND held.pid = sessions.pid))
        )
    """  # noqa: S608


def age(moment: str) -> str:
    """In seconds, as `rocket_rides.standings` has it; NULL where that is not a finite time."""
    return (
        f"CASE WHEN isfinite({moment}) THEN greatest(0, extract(epoch FROM now() - {moment})) END"
    )


ROLLUP_FACTS = f"""
    SELECT json_build_object(
        'lead', {lead(ROLLUP, Lock.ROLLUP)}, 'complete_to', complete_to,
        'minutes_set_aside', (SELECT count(*) FROM (
            SELECT FROM set_aside_minutes LIMIT %(limit)s) minutes),
        'dirty_minutes', NULL
    )
    FROM (SELECT coalesce(max(complete_to), 0) AS complete_to FROM rollup_state) state
"""  # noqa: S608
RECEIPTS_FACTS = f"""
    SELECT json_build_object(
        'workers', (SELECT count(DISTINCT name) FROM sessions
                    WHERE starts_with(name, '{RECEIPTS}')),
        'delivered', done.delivered, 'swept', done.swept, 'given_up', done.given_up,
        'entries_not_ours', done.entries_not_ours, 'entries_malformed', done.entries_malformed,
        'entries_passed', done.entries_passed,
        'dead', (SELECT count(*) FROM (
            SELECT FROM receipts WHERE {WAITS_FOR_A_DECISION} LIMIT %(limit)s) letters),
        'being_sent_again', (SELECT count(*) FROM (
            SELECT FROM receipts WHERE replay_at IS NOT NULL LIMIT %(limit)s) marked),
        'pending', coalesce(lag.pending, 0), 'queued', coalesce(lag.queued, 0),
        'in_flight', coalesce(lag.in_flight, 0), 'waiting', coalesce(lag.waiting, 0),
        'oldest_undelivered_seconds', {age("oldest.created_at")},
        'newest_dead', (SELECT coalesce(json_agg(json_build_object(
            'ride', ride_id, 'attempts', attempts - excused, 'reason', coalesce(reason, ''),
            'since', decided_at
        ) ORDER BY ride_id DESC), '[]') FROM (
            SELECT * FROM receipts WHERE {WAITS_FOR_A_DECISION} ORDER BY ride_id DESC LIMIT {NEWEST}
        ) newest)
    )
    FROM (SELECT coalesce(sum(delivered), 0) AS delivered, coalesce(sum(swept), 0) AS swept,
                 coalesce(sum(dead), 0) AS given_up,
                 coalesce(sum(entries_not_ours), 0) AS entries_not_ours,
                 coalesce(sum(entries_malformed), 0) AS entries_malformed,
                 coalesce(sum(entries_passed), 0) AS entries_passed
          FROM receipts_workers) done
    LEFT JOIN receipts_lag lag ON true
    LEFT JOIN LATERAL (
        SELECT created_at FROM rides WHERE id > lag.complete_to ORDER BY id LIMIT 1
    ) oldest ON true
"""  # noqa: S608
# Kind by kind, from the index alone.
MALFORMED_ENTRIES = """
    WITH RECURSIVE kinds (kind) AS (
        SELECT min(consumer_kind) FROM malformed_entries
        UNION ALL
        SELECT (SELECT min(consumer_kind) FROM malformed_entries WHERE consumer_kind > kind)
        FROM kinds WHERE kind IS NOT NULL
    )
    SELECT coalesce(json_object_agg(kind, (SELECT count(*) FROM (
        SELECT FROM malformed_entries WHERE consumer_kind = kind LIMIT %(limit)s) entries)), '{}')
    FROM kinds WHERE kind IS NOT NULL
"""
# Of the records that wait for a decision: few, or their readers would stand still.
UNDECIDED = """
    SELECT * FROM (
        SELECT * FROM held_out_records WHERE dropped_at IS NULL LIMIT %(limit)s
    ) undecided
"""
NEWEST_HELD_OUT = f"""
    SELECT coalesce(json_agg(json_build_object(
        'kind', kind, 'name', name, 'position', position, 'type', type, 'reason', reason,
        'attempts', attempts, 'since', held_out_at, 'retry', retry
    ) ORDER BY held_out_at DESC, position DESC), '[]')
    FROM ({UNDECIDED} ORDER BY held_out_at DESC, position DESC LIMIT {NEWEST}) newest
"""  # noqa: S608
# The rows that watch/kept.py has the words for, by the names and shapes that it gives them.
KEPT = f"""
    SELECT coalesce(json_agg(kept ORDER BY at), '[]')
    FROM (
        (SELECT began_at AS at, json_build_object(
             'what', 'led', 'at', began_at, 'after', after) AS kept
         FROM terms ORDER BY after DESC LIMIT {NEWEST})
        UNION ALL
        (SELECT changed_at, json_build_object(
             'what', 'reset', 'at', changed_at, 'consumer', consumer_name,
             'run', reconciliation_id, 'before', from_total, 'now', to_total)
         FROM (SELECT * FROM resets ORDER BY id DESC LIMIT {NEWEST}) newest
         WHERE status = 'applied')
        UNION ALL
        (SELECT created_at, json_build_object(
             'what', 'ran', 'at', created_at, 'run', id, 'rides', rides, 'total', total_distance)
         FROM reconciliations ORDER BY id DESC LIMIT {NEWEST})
        UNION ALL
        (SELECT ended_at, json_build_object(
             'what', 'faulted', 'at', ended_at, 'run', id, 'status', status,
             'reason', left(coalesce(reason, ''), 200))
         FROM (SELECT * FROM runs ORDER BY id DESC LIMIT {NEWEST}) newest
         WHERE status NOT IN ('running', 'agreed'))
        UNION ALL
        (SELECT created_at, json_build_object(
             'what', 'malformed entry', 'at', created_at, 'kind', consumer_kind,
             'consumer', consumer_name, 'reason', left(reason, 200))
         FROM malformed_entries ORDER BY id DESC LIMIT {NEWEST})
        UNION ALL
        (SELECT held_out_at, json_build_object(
             'what', 'held out', 'at', held_out_at, 'kind', kind, 'consumer', name,
             'position', position, 'type', type, 'reason', left(reason, 200))
         FROM ({UNDECIDED}) held ORDER BY held_out_at DESC LIMIT {NEWEST})
    ) newest
    WHERE at > now() - interval '{RECENTLY}' AND at <= now()
"""  # noqa: S608
