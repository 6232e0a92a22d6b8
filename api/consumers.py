"""All readers of the log, as GET /consumers shows them: where each stands, and its lag."""

from typing import Any

from sqlalchemy import Connection

from rocket_rides.standings import STANDINGS

Answer = dict[str, Any]

LIMIT = 100_000

CONSUMERS = f"""
    SELECT kind, name, total_distance, ratings, stars, position, last_ride_id, last_redis_id,
           entries_not_ours, records_behind, seconds_behind, recounts,
           json_build_object('undecided', held_out, 'dropped', dropped) AS held_out, newest.*
    FROM ({STANDINGS}) standings LEFT JOIN consumer_states USING (kind, name)
    LEFT JOIN rating_sums USING (kind, name)
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
"""  # noqa: S608
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
    found = connection.exec_driver_sql(CONSUMERS, {"limit": LIMIT})
    consumers = [dict(row) for row in found.mappings()]
    for consumer in consumers:
        reset = {name: consumer.pop(name) for name in RESET}
        consumer["reset"] = reset if reset["reconciliation"] else None
    return consumers
