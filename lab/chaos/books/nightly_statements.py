"""What must hold of the nightly job's rows: it called wrong what the nemesis falsified, no more.

A restore undoes the job's rows together with the drifts that they are about. A drift is compared
with runs by `made_after`, the newest run when it was made: any later run may have seen it.
"""

RESETS = """
    SELECT format('the nightly job asked for a reset of %s, for %s m, and nobody had made that',
                  consumer_name, drift)
    FROM resets JOIN reconciliations ON reconciliations.id = reconciliation_id
    LEFT JOIN LATERAL jsonb_to_recordset(compared -> 'consumers')
        AS frozen (name text, drift numeric) ON name = consumer_name
    WHERE NOT compared ? 'stranded' AND (drift IS DISTINCT FROM 0.001 OR NOT EXISTS (
        SELECT FROM chaos.drifts
        WHERE (kind, victim) = ('total', consumer_name) AND made_after < reconciliation_id
    ))
"""
WRONG_MINUTES = """
    SELECT format('the nightly job called the minute %s wrong, and nobody had made it so',
                  to_char(minute AT TIME ZONE 'UTC', 'HH24:MI'))
    FROM recomputations WHERE NOT EXISTS (
        SELECT FROM chaos.drifts WHERE (kind, victim) = (
            'minute', to_char(minute AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        ) AND made_after < reconciliation_id
    )
"""
OTHERS = """
    SELECT format('night %s found %s receipts missing, of %s', id, missing, made)
    FROM (
        SELECT id, (compared #>> '{receipts,missing}')::bigint AS missing, (
            SELECT count(*) FROM chaos.drifts WHERE kind = 'outcome' AND made_after < id
        ) AS made FROM reconciliations
    ) nights WHERE missing > made
    UNION ALL
    SELECT format('night %s found a receipt, or a staged record, of no ride', id)
    FROM reconciliations WHERE '0' <> ANY(array_remove(ARRAY[
        compared #>> '{receipts,strange}', compared #>> '{outbox,sent}',
        compared #>> '{outbox,orphans}', compared #>> '{outbox,different}'
    ], NULL))
    UNION ALL
    SELECT format('night %s found a checkpoint past every ride: %s', id, consumer ->> 'name')
    FROM reconciliations, jsonb_array_elements(compared -> 'consumers') consumer
    WHERE (consumer ->> 'stray')::boolean
    UNION ALL
    SELECT format('night %s has not compared everything', id) FROM reconciliations
    WHERE NOT compared ?& '{rollup,receipts,outbox}' AND NOT compared ? 'stranded'
"""
AT_ANY_MOMENT = (RESETS, WRONG_MINUTES, OTHERS)
