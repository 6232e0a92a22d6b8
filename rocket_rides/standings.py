"""All readers of the log in SQL: where each stands, and its lag, counted up to a limit.

Checkpoints are in Postgres. Consumer groups are in Redis (`rocket_rides.seen_groups`): while that
can't be asked, only this database's own group is there, whose lag is in Postgres, with nulls for
its position.

A lag costs the same however large it is: rides are counted up to the limit, and its seconds are the
age of the first ride that the reader lacks, which an index finds.
"""

from typing import Any

from rocket_rides.log import LARGEST_ID, START
from rocket_rides.seen_groups import SeenGroup

# Whether the entry of this ride and term is this database's (`rocket_rides.terms`).
BELIEVED = """(
    EXISTS (
        SELECT FROM terms WHERE terms.term = {0}_term AND {0}_ride > after AND {0}_ride <= coalesce(
            (SELECT min(later.after) FROM terms later WHERE later.after > terms.after),
            (SELECT max(id) FROM rides)
        )
    ) OR ({0}_term = '' AND {0}_ride <= (SELECT min(after) FROM terms))
)"""

# Of each group: the first ride that is pending, and the last one that was given to a member. Both
# are NULL when they are unknown: Redis can't be asked, or the entry is another's or was trimmed,
# perhaps with later ones that nobody was given.
# OFFSET 0: or else the planner puts copies of all this wherever the two are used.
GROUPS = f"""
    SELECT name, last_redis_id, pending,
           CASE WHEN {BELIEVED.format("pending")} THEN pending_ride END AS pending_ride,
           CASE WHEN has_all THEN (SELECT last_sent_id FROM streamer_state)
                WHEN last_redis_id = '{START}' THEN 0
                WHEN {BELIEVED.format("given")} THEN given_ride END AS given_upto
    FROM unnest(
        %(names)s::text[], %(redis_ids)s::text[], %(pending)s::bigint[], %(has_all)s::boolean[],
        %(pending_rides)s::bigint[], %(pending_terms)s::text[],
        %(given_rides)s::bigint[], %(given_terms)s::text[]
    ) seen (name, last_redis_id, pending, has_all, pending_ride, pending_term,
            given_ride, given_term)
    OFFSET 0
"""  # noqa: S608 (no value is put in)
# The lag of this database's own group is that of the receipts: what was trimmed, or lost with
# Redis, is still to be delivered. Up to `complete_to` every one has an outcome, and later ones may:
# while one receipt is tried again, all those after it. So only the newest rides are looked at.
# EXCEPT reads each table once, where a join might look up one receipt after the other.
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
READERS = f"""
    SELECT kind, name, last_ride_id, last_redis_id, unbelieved_entries, NULL AS pending_entries,
           0 AS pending, counted AS upto, counted AS complete_to
    FROM checkpoints CROSS JOIN LATERAL (
        SELECT CASE kind WHEN 'rollup' THEN (SELECT complete_to FROM rollup_state)
               ELSE last_ride_id END AS counted
    ) what
    UNION ALL
    SELECT 'group', name, given_upto, last_redis_id, NULL, groups.pending,
           coalesce(receipts.pending, groups.pending), coalesce(receipts.upto, given_upto),
           coalesce(receipts.complete_to,
                    CASE groups.pending WHEN 0 THEN given_upto ELSE pending_ride - 1 END)
    FROM ({GROUPS}) groups LEFT JOIN receipts_lag receipts ON name = %(own)s
"""  # noqa: S608
# The rides are counted once for all readers: those between each `upto` and the next higher one, its
# *step*; and added up once, from the last step down. `receipts_lag` is RECEIPTS_LAG, for statements
# that have it in a WITH of their own.
STANDINGS_GIVEN_RECEIPTS_LAG = f"""
    WITH readers AS MATERIALIZED (
        SELECT *, dense_rank() OVER (ORDER BY upto) AS step FROM ({READERS}) readers
    ),
    steps AS (SELECT array_agg(DISTINCT upto ORDER BY upto) AS uptos FROM readers
              WHERE upto IS NOT NULL),
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
    SELECT kind, name, last_ride_id, last_redis_id, unbelieved_entries, pending_entries,
           CASE WHEN upto IS NOT NULL
                THEN least(%(limit)s, pending + (SELECT rides FROM later)[step])
           END AS rides_behind,
           CASE WHEN complete_to IS NULL OR NOT isfinite(created_at) THEN NULL
                WHEN created_at IS NULL THEN 0
                ELSE greatest(0, round(extract(epoch FROM now() - created_at), 3))
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


def values(seen: list[SeenGroup] | None, own: str | None, limit: int) -> dict[str, Any]:
    """What STANDINGS asks for; `own` is the name of this database's group.

    `seen` was seen in Redis just before; None when that could not be asked.
    """
    if seen is None:
        seen = [SeenGroup(own)] if own else []
    return {
        "own": own,
        "limit": limit,
        "names": [group.name for group in seen],
        "redis_ids": [group.last_delivered for group in seen],
        "pending": [group.pending for group in seen],
        "has_all": [group.has_all for group in seen],
        "pending_rides": [group.first_pending and group.first_pending.id for group in seen],
        "pending_terms": [group.first_pending and group.first_pending.term for group in seen],
        "given_rides": [group.given and group.given.id for group in seen],
        "given_terms": [group.given and group.given.term for group in seen],
    }
