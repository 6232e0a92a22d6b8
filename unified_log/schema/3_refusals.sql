-- What attach() refuses, each in a sentence: tables, positions and plans here, data in `4_data.sql`.
-- A function says why a kind can't be one, or null.


CREATE FUNCTION log_kind_known(kind log_kinds) RETURNS text LANGUAGE sql STABLE
SET search_path FROM CURRENT
RETURN CASE
    -- 6 more, 'stage ', are the name of its trigger's function: 63 bytes at most.
    WHEN kind.type !~ '^[a-z][a-z0-9_]*([.][a-z0-9_]+)+$' OR length(kind.type) > 57
    THEN 'a type is an object and an action, in small letters, as in order.create'
    WHEN kind.type IN (SELECT type FROM log_kinds)
    THEN 'it is one already: a new meaning needs a new type'
    WHEN kind.source IN (SELECT source FROM log_kinds)
    THEN format('the table %s is one already: each of its rows has one record', kind.source)
END;


CREATE FUNCTION log_source_refusal(kind log_kinds) RETURNS text LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT AS $$
DECLARE
    class pg_class := (SELECT pg_class FROM pg_class WHERE oid = kind.source);
    drawn pg_attribute := (SELECT pg_attribute FROM pg_attribute WHERE attrelid = kind.source
                           AND attname = kind.position_column AND attnum > 0);
    created pg_attribute := (SELECT pg_attribute FROM pg_attribute WHERE attrelid = kind.source
                             AND attname = kind.created_at_column AND attnum > 0);
BEGIN
    RETURN CASE
        WHEN class.relkind NOT IN ('r', 'p') OR class.relpersistence <> 'p'
        THEN format('%s is no lasting table', kind.source)
        WHEN class.relispartition
        THEN format('%s is a partition: attach the whole table', kind.source)
        WHEN class.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = kind.source)
        THEN format('other tables inherit from %s, and share no unique index with it', kind.source)
        WHEN drawn.attname IS NULL OR drawn.atttypid <> 'bigint'::regtype OR NOT drawn.attnotnull
        THEN format('%s has no column %I that is bigint NOT NULL', kind.source, kind.position_column)
        WHEN NOT EXISTS (
            SELECT FROM pg_index WHERE indrelid = kind.source AND indisunique AND indisvalid
            AND indimmediate AND indnkeyatts = 1 AND indkey[0] = drawn.attnum AND indpred IS NULL)
        THEN format('%s.%I has no unique index of its own', kind.source, kind.position_column)
        WHEN (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
              WHERE adrelid = kind.source AND adnum = drawn.attnum)
             IS DISTINCT FROM format('nextval(%L::regclass)', 'log_position'::regclass)
        THEN format('%s.%I does not draw from log_position: it needs DEFAULT nextval(''log_position'')',
                    kind.source, kind.position_column)
        WHEN created.attname IS NULL OR created.atttypid <> 'timestamptz'::regtype
        THEN format('%s has no column %I that is timestamptz: created_at_column => names another',
                    kind.source, kind.created_at_column)
        WHEN kind.stages AND EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = kind.source AND attgenerated = 'v')
        THEN format('a trigger can''t see the virtual columns of %s: make them STORED', kind.source)
    END;
END $$;


-- Rows that are there already get staged: the barrier must have been watching when their positions
-- were drawn. So they must be this transaction's own. (A row that it only updates, with the position
-- that it had, passes for one, and may be stranded: the leader warns of that.)
CREATE FUNCTION log_rows_refusal(kind log_kinds) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
DECLARE
    -- A visible row of a transaction that is still in progress is our own, also in a subtransaction,
    -- whose number is above ours. Both are of 32 bits, and wrap.
    ours constant bigint := pg_current_xact_id()::text::bigint;
    strange bigint;
BEGIN
    EXECUTE format(
        'SELECT sum(rows) FROM (
            SELECT (xmin::text::bigint - $1 %% 4294967296 + 4294967296) %% 4294967296 AS later,
                   count(*) AS rows, min(%1$I) AS least, max(%1$I) AS greatest
            FROM %2$s GROUP BY xmin
        ) by_transaction
        WHERE CASE WHEN later >= 2147483648 THEN true
              ELSE pg_xact_status(($1 + later)::text::xid8) <> ''in progress'' END
           OR least <= (SELECT last_sent_id FROM streamer_state)
           OR (greatest <= pg_sequence_last_value(''log_position'')) IS NOT TRUE',
        kind.position_column, kind.source) USING ours INTO strange;
    RETURN CASE WHEN strange > 0 THEN format(
        'the log may have passed the positions of %s rows of %s, which this transaction has not drawn: '
        'draw new ones in it, as in UPDATE %2$s SET %3$I = nextval(''log_position'')',
        strange, kind.source, kind.position_column) END;
END $$;


-- Refuses plans of the view that take longer the more records there are, under the settings of the
-- sessions that look records up.
CREATE FUNCTION log_records_scans() RETURNS text LANGUAGE plpgsql SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexscan = on
SET enable_indexonlyscan = on SET enable_sort = on SET enable_incremental_sort = on
AS $$
DECLARE
    statement text;
    plan json;
    node text;
BEGIN
    FOREACH statement IN ARRAY ARRAY[
        'SELECT max(id) FROM log_records',
        'SELECT id, type, data::text FROM log_records WHERE id > 0 ORDER BY id LIMIT 1000'
    ] LOOP
        EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
        node := coalesce(node, (regexp_match(plan::text,
            '"Node Type": "(Sort|Incremental Sort|Seq Scan|Bitmap Heap Scan)"'))[1]);
    END LOOP;
    RETURN 'looking up the newest record would need a ' || node;
END $$;
