"""What must be true of the nightly job's rows: it called wrong what was made so, and nothing else.

A restore undoes its rows together with the drifts that they are about. Runs are one at a time; so
one that another one lies before, since a drift was made, began when the drift was there.
"""

# When a total was frozen it had a millimetre too much, and no other drift: made before it came to
# that ride, and repaired no sooner.
RESETS = """
    WITH made AS MATERIALIZED (
        SELECT victim, mark::int AS resets, last_ride_id FROM chaos.drifts WHERE kind = 'total'
    )
    SELECT format('the nightly job asked for a reset of %s, for %s m at ride %s, and nobody had'
                  ' made that', consumer_name, drift, frozen.last_ride_id)
    FROM resets JOIN reconciliations ON reconciliations.id = reconciliation_id
    LEFT JOIN LATERAL jsonb_to_recordset(compared -> 'consumers')
        AS frozen (name text, drift numeric, last_ride_id bigint) ON name = consumer_name
    WHERE NOT compared ? 'mended' AND (drift IS DISTINCT FROM 0.001 OR NOT EXISTS (
        SELECT FROM made WHERE victim = consumer_name
        AND frozen.last_ride_id BETWEEN made.last_ride_id AND coalesce((
            SELECT from_ride_id FROM resets applied
            WHERE (applied.consumer_name, status) = (victim, 'applied')
            ORDER BY applied.id OFFSET made.resets LIMIT 1
        ), frozen.last_ride_id)
    ))
"""
WRONG_MINUTES = """
    WITH made AS MATERIALIZED (
        SELECT victim::timestamptz AS minute, made_after FROM chaos.drifts WHERE kind = 'minute'
    )
    SELECT format('the nightly job called the minute %s wrong, and nobody had made it so',
                  to_char(minute AT TIME ZONE 'UTC', 'HH24:MI'))
    FROM recomputations WHERE NOT EXISTS (
        SELECT FROM made
        WHERE made.minute = recomputations.minute AND made_after < reconciliation_id
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
    SELECT format('night %s found a drift of %s m of %s, and asked for no reset',
                  reconciliations.id, consumer ->> 'drift', consumer ->> 'name')
    FROM reconciliations, jsonb_array_elements(compared -> 'consumers') consumer
    WHERE (consumer ->> 'drift')::numeric <> 0 AND NOT EXISTS (
        SELECT FROM resets
        WHERE (reconciliation_id, consumer_name) = (reconciliations.id, consumer ->> 'name')
    )
    UNION ALL
    SELECT format('night %s has not compared everything', id) FROM reconciliations
    WHERE NOT compared ?& '{rollup,receipts,outbox}' AND NOT compared ? 'mended'
"""
AT_ANY_MOMENT = (RESETS, WRONG_MINUTES, OTHERS)

# The drifts that were `there` before the `full` run, which compares everything: each run up to that
# one which began after one was made, and compared what it is in, has listed it. An incremental run
# compares the minutes of the days that have new rides, and the receipts of new rides.
MISSED = """
    WITH runs AS (
        SELECT id, compared, id = %(full)s AS is_full,
               (compared #>> '{rollup,proved_upto}')::bigint AS minutes_upto,
               (compared #>> '{receipts,proved_upto}')::bigint AS receipts_upto,
               max((compared #>> '{rollup,proved_upto}')::bigint) OVER earlier AS minutes_after,
               max((compared #>> '{receipts,proved_upto}')::bigint) OVER earlier AS receipts_after
        FROM reconciliations WHERE id <= %(full)s AND NOT compared ? 'mended'
        WINDOW earlier AS (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ), compared_both AS (
        SELECT runs.*, kind, victim FROM runs JOIN chaos.drifts ON token = ANY(%(there)s)
        WHERE (is_full OR EXISTS (
            SELECT FROM runs before WHERE made_after < before.id AND before.id < runs.id
        )) AND CASE kind
            WHEN 'total' THEN true
            WHEN 'outcome' THEN victim::bigint <= receipts_upto
                AND (is_full OR victim::bigint > coalesce(receipts_after, 0))
            ELSE NOT EXISTS (
                SELECT FROM rides WHERE rides.id > minutes_upto
                AND date_trunc('minute', created_at, 'UTC') = victim::timestamptz
            ) AND EXISTS (
                SELECT FROM rides WHERE rides.id <= minutes_upto
                AND (is_full OR rides.id > coalesce(minutes_after, 0))
                AND date_trunc('day', created_at, 'UTC')
                    = date_trunc('day', victim::timestamptz, 'UTC')
            ) AND NOT EXISTS (
                SELECT FROM set_aside_minutes WHERE minute = victim::timestamptz
            )
        END
    )
    SELECT format('night %%s missed the drift of the %%s %%s', id, kind, victim)
    FROM compared_both WHERE CASE kind
        WHEN 'total' THEN NOT EXISTS (
            SELECT FROM jsonb_array_elements(compared -> 'consumers') consumer
            WHERE consumer ->> 'name' = victim AND (consumer ->> 'drift')::numeric <> 0
        )
        WHEN 'outcome' THEN (compared #>> '{receipts,missing}')::bigint < (
            SELECT count(*) FROM compared_both others
            WHERE (others.id, others.kind) = (compared_both.id, 'outcome')
        )
        ELSE NOT EXISTS (
            SELECT FROM recomputations
            WHERE reconciliation_id = compared_both.id AND minute = victim::timestamptz
        )
    END
"""
