"""The parts of the statement on the reconciliation: proven sums, and what its runs have found."""

from watch.runs import SHOWN

RECONCILIATIONS = 5  # are listed
LONGEST = 400  # characters of a reason or of a finding

# OFFSET 0: or else the planner may look through all that is pending.
PROVEN_SUMS = f"""
    SELECT coalesce(json_agg(json_build_object(
        'id', id, 'at', created_at, 'ride', position, 'rides', rides, 'total', total_distance,
        'drift', (
            SELECT coalesce(json_object_agg(name, drift), '{{}}')
            FROM jsonb_to_recordset(compared -> 'consumers')
                consumer(name text, drift numeric, recounts boolean)
            WHERE drift <> 0 AND recounts IS NOT TRUE
        ),
        'unrepaired', (
            SELECT coalesce(json_agg(consumer_name ORDER BY consumer_name), '[]') FROM (
                SELECT * FROM resets WHERE reconciliation_id = newest.id OFFSET 0
            ) asked WHERE status = 'pending'
        )
    ) ORDER BY id DESC), '[]')
    FROM (SELECT * FROM reconciliations ORDER BY id DESC LIMIT {RECONCILIATIONS}) newest
"""  # noqa: S608
COMPLETED = "status IN ('agreed', 'wrong', 'held')"
# The index runs_last_completed leads to it, however many runs have failed since.
COMPLETED_RUN = f"""
    WITH last AS MATERIALIZED (
        SELECT * FROM runs WHERE {COMPLETED} ORDER BY id DESC LIMIT 1
    ),
    found AS MATERIALIZED (
        SELECT number, coalesce(finding ->> 'kind', '') AS kind,
               coalesce(finding ->> 'part', '') AS part,
               coalesce(finding -> 'held' = 'true', false) AS held,
               left(coalesce(finding ->> 'about', ''), {LONGEST}) AS about
        FROM last, jsonb_array_elements(findings) WITH ORDINALITY each (finding, number)
        LIMIT %(limit)s
    )
    SELECT json_build_object(
        'id', id, 'status', status, 'at', ended_at, 'ride', position, 'verdicts', verdicts,
        'oldest_look', oldest_look,
        'findings', (
            SELECT coalesce(json_agg(json_build_object(
                'kind', kind, 'part', part, 'held', held, 'about', about
            ) ORDER BY held DESC, number), '[]')
            FROM (SELECT * FROM found ORDER BY held DESC, number LIMIT {SHOWN}) shown
        ),
        'open', (SELECT coalesce(json_object_agg(kind, count), '{{}}')
                 FROM (SELECT kind, count(*) FROM found GROUP BY kind) kinds),
        'held', (SELECT count(*) FROM found WHERE held),
        'approved', EXISTS (SELECT FROM approvals WHERE run_id = last.id AND used_by IS NULL)
    )
    FROM last
"""  # noqa: S608
# Every run since the last completed one has failed, but for the newest, which may be under way.
FAILED = f"""
    status = 'failed' AND id > coalesce((SELECT max(id) FROM runs WHERE {COMPLETED}), 0)
"""  # noqa: S608
FAILED_RUN = f"""
    SELECT json_build_object(
        'id', id, 'since', ended_at, 'reason', left(coalesce(reason, ''), {LONGEST})
    )
    FROM runs WHERE {FAILED} ORDER BY id DESC LIMIT 1
"""  # noqa: S608
FAILED_RUNS = f"""
    SELECT count(*) FROM (SELECT FROM runs WHERE {FAILED} LIMIT %(limit)s) failed
"""  # noqa: S608
RUN_UNDER_WAY = """
    SELECT json_build_object('id', id, 'since', started_at)
    FROM (SELECT * FROM runs ORDER BY id DESC LIMIT 1) newest WHERE status = 'running'
"""
