"""All readers of the log, as GET /consumers shows them: where each stands, and its lag."""

from typing import Any

from sqlalchemy import Connection, text

from api.database import committed

Answer = dict[str, Any]

# The receipts stand in no checkpoint: they are the group, whose lag is in rides. MATERIALIZED: with
# the recursion of `receipts_done` in its place, the planner makes a plan that takes seconds.
CONSUMERS = """
    WITH done AS MATERIALIZED (SELECT * FROM receipts_done)
    SELECT kind, name, total_distance, ratings, stars, position, last_ride_id, last_redis_id,
           entries_ignored, records_behind, seconds_behind, recounts,
           json_build_object('undecided', held_out, 'dropped', dropped) AS held_out, newest.*
    FROM (
        SELECT kind, name, standings.position, last_redis_id, entries_ignored, records_behind,
               seconds_behind, recounts, held_out, dropped
        FROM standings(100000) JOIN current_checkpoints USING (kind, name)
        UNION ALL
        SELECT 'group', 'receipts', position, NULL,
               (SELECT entries_ignored::bigint FROM done), pending,
               CASE WHEN oldest_at IS NULL THEN 0
                    WHEN isfinite(oldest_at)
                    THEN greatest(0, round(extract(epoch FROM now() - oldest_at), 3)) END,
               false, 0, 0
        FROM receipts_lag(100000)
    ) readers
    LEFT JOIN LATERAL (
        SELECT total_distance FROM consumer_states state
        WHERE readers.kind = 'total' AND state.name = readers.name
        ORDER BY version DESC LIMIT 1
    ) total ON true
    LEFT JOIN LATERAL (
        SELECT ratings, stars FROM rating_sums state
        WHERE readers.kind = 'ratings' AND state.name = readers.name
        ORDER BY version DESC LIMIT 1
    ) rated ON true
    LEFT JOIN LATERAL (
        SELECT reconciliation_id AS reconciliation, status, changed_at,
               from_position, from_total, to_position, to_total
        FROM resets WHERE (consumer_kind, consumer_name) = (kind, name)
        ORDER BY resets.id DESC LIMIT 1
    ) newest ON true
    CROSS JOIN LATERAL (
        SELECT CASE WHEN position IS NOT NULL THEN coalesce(max(id), 0) END AS last_ride_id
        FROM rides WHERE id <= position
    ) counted
    ORDER BY name, kind
"""
RESET = (
    "reconciliation",
    "status",
    "changed_at",
    "from_position",
    "from_total",
    "to_position",
    "to_total",
)


def show(connection: Connection) -> list[Answer]:
    """Each reader, by name, all at one moment. Raises DBAPIError."""
    with committed(connection):
        consumers = [dict(row) for row in connection.execute(text(CONSUMERS)).mappings()]
    for consumer in consumers:
        reset = {name: consumer.pop(name) for name in RESET}
        consumer["reset"] = reset if reset["reconciliation"] else None
    return consumers
