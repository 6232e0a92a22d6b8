"""A ride's receipt, as GET /rides/<id>/receipt shows it."""

from rocket_rides.receipts import WEBHOOK_ID

# The ride and what came of its receipt; outcome is null until it is delivered or dead.
FIND = f"""
    SELECT rides.id AS ride_id, outcome, coalesce(attempts, 0) AS attempts, reason,
           {WEBHOOK_ID} AS webhook_id, first_at AS first_attempt_at, decided_at,
           replay_at IS NOT NULL AS replay, dropped_at IS NOT NULL AS dropped
    FROM rides CROSS JOIN receipts_state LEFT JOIN receipts ON ride_id = rides.id
    WHERE rides.id = %s
"""  # noqa: S608
