"""What must hold of the tables of the nightly job: it found what chaos had falsified, and no more.

A restore undoes its rows together with the drifts that they are about. `made_after` is the newest
reconciliation when a drift was made: any later one may have seen it.
"""

RESETS = """
    SELECT format('the nightly job asked for a reset of %s, for %s m, and chaos had made no drift',
                  consumer_name, drift)
    FROM resets JOIN reconciliations ON reconciliations.id = reconciliation_id
    LEFT JOIN LATERAL jsonb_to_recordset(compared -> 'consumers')
        AS frozen (name text, drift numeric) ON name = consumer_name
    WHERE drift IS DISTINCT FROM 0.001 OR NOT EXISTS (
        SELECT FROM chaos.drifts
        WHERE (kind, victim) = ('total', consumer_name) AND made_after < reconciliation_id
    )
"""
# No reset has changed a right total, or left a wrong one. A run may ask for one just before the one
# that an earlier run has asked for is applied: then the total is right already, and stays as it is.
RIGHT_TOTALS = """
    WITH applied AS (
        SELECT resets.*, from_total = was AS was_right, exact,
               lag(from_total = was) OVER (PARTITION BY consumer_name ORDER BY id) AS before
        FROM resets,
        LATERAL (SELECT coalesce(sum(distance), 0) AS was FROM rides WHERE id <= from_position) a,
        LATERAL (SELECT coalesce(sum(distance), 0) AS exact FROM rides WHERE id <= to_position) b
        WHERE status = 'applied'
    )
    SELECT format('a reset of %s left %s m at position %s, where the rides are %s m',
                  consumer_name, to_total, to_position, exact)
    FROM applied WHERE to_total <> exact
    UNION ALL
    SELECT format('a reset of %s changed a right total: %s m at position %s',
                  consumer_name, from_total, from_position)
    FROM applied WHERE was_right AND before IS DISTINCT FROM false
"""
# A run that found something says so, and found only what chaos had done. A reader may be behind:
# its process was down, or frozen, since the last run.
RUNS = """
    SELECT format('run %s is %s, and its findings are %s', id, status, findings) FROM runs
    WHERE status IN ('agreed', 'wrong', 'held') AND status <> CASE
        WHEN findings = '[]' THEN 'agreed'
        WHEN findings @> '[{"held": true}]' THEN 'held' ELSE 'wrong'
    END
    UNION ALL
    SELECT format('run %s found what chaos had not done: %s', id, about)
    FROM runs, jsonb_to_recordset(findings) AS finding (kind text, key text, about text)
    WHERE finding.kind <> 'reader_behind' AND NOT EXISTS (
        SELECT FROM chaos.drifts WHERE (drifts.kind, finding.kind) IN (
            ('minute', 'minutes_wrong'), ('minute', 'minutes_held'), ('outcome', 'receipts_missing')
        ) OR (drifts.kind, key) = ('total', victim || ' 0.001 0 False')
    ) AND NOT EXISTS (
        SELECT FROM chaos.tamperings WHERE id > after_run AND id <= upto_run
        AND (what, finding.kind) IN (
            ('rides', 'rides_changed'), ('rides', 'receipts_strange'), ('state', 'reader_gone')
        )
    )
"""
WRONG_MINUTES = """
    SELECT format('the nightly job called the minute %s wrong, and chaos had made no drift',
                  to_char(minute AT TIME ZONE 'UTC', 'HH24:MI'))
    FROM recomputations WHERE NOT EXISTS (
        SELECT FROM chaos.drifts
        WHERE (kind, victim) = ('minute', minute::text) AND made_after < reconciliation_id
    )
"""
OTHER_NIGHTS = """
    SELECT format('run %s found %s receipts missing, and %s were deleted', id, missing, made)
    FROM (
        SELECT id, (compared #>> '{receipts,missing}')::bigint AS missing, (
            SELECT count(*) FROM chaos.drifts WHERE kind = 'outcome' AND made_after < id
        ) AS made FROM reconciliations
    ) runs WHERE missing > made
    UNION ALL
    SELECT format('run %s has not compared everything', id) FROM reconciliations
    WHERE NOT compared ?& '{rollup,receipts,outbox,ratings}'
"""
AT_ANY_MOMENT = (RESETS, RIGHT_TOTALS, RUNS, WRONG_MINUTES, OTHER_NIGHTS)

# When nothing is left to do.
REPAIRED = """
    SELECT format('the drift of the %s %s was never repaired', kind, victim)
    FROM chaos.known_drifts WHERE is_there
"""
ALL_OVER = """
    SELECT format('run %s is still running', id) FROM runs WHERE status = 'running'
    UNION ALL
    SELECT format('the tampering with the %s was never undone', what)
    FROM chaos.tamperings WHERE upto_run IS NULL
"""
AT_THE_END = (REPAIRED, ALL_OVER)
