-- Kinds of records are registered: attach() checks a table and an expression, writes them down, and
-- generates the view `log_records` anew. Two branches of work that each attach a kind both have it.
--
-- For the owner of the tables, in a migration. What would break the log is refused, in a sentence.


-- The SELECT of one kind, as it stands in the view.
CREATE FUNCTION log_kind_select(kind log_kinds) RETURNS text LANGUAGE sql STABLE
RETURN format(
    'SELECT %1$I.%2$I AS id, %1$I.%3$I AS created_at, %4$L::text AS type, %5$s AS data FROM %6$s %1$I',
    (SELECT relname FROM pg_class WHERE oid = kind.source),
    kind.position_column, kind.created_at_column, kind.type, kind.data, kind.source
);


CREATE FUNCTION generate_log_records() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kinds text := (SELECT string_agg(log_kind_select(each), E'\nUNION ALL\n' ORDER BY type)
                   FROM log_kinds each);
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW log_records AS ' || coalesce(kinds,
        'SELECT NULL::bigint AS id, NULL::timestamptz AS created_at, NULL::text AS type,
                NULL::jsonb AS data WHERE false');
END $$;


-- Why this can't be a kind's data, which has to say the same in every session; null where it can.
--
-- The expression is evaluated over the table's newest rows, and over one made up of a value for each
-- column whose text depends on the session: once as our sessions have it, once as another might.
CREATE FUNCTION log_data_varies(kind log_kinds) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    made_up constant jsonb := (
        SELECT jsonb_object_agg(attname, CASE
            WHEN atttypid IN ('timestamp'::regtype, 'timestamptz'::regtype)
            THEN '"2001-02-03 04:05:06.789+00"'
            WHEN atttypid = 'date'::regtype THEN '"2001-02-03"'
            WHEN atttypid IN ('time'::regtype, 'timetz'::regtype) THEN '"04:05:06.789+00"'
            WHEN atttypid = 'interval'::regtype THEN '"1 mon 2 days 03:04:05.678"'
            WHEN atttypid IN ('float4'::regtype, 'float8'::regtype) THEN '0.30000000000000004'
            WHEN atttypid = 'bytea'::regtype THEN '"\\x5c00ff"'
            WHEN atttypid = 'money'::regtype THEN '12.34'
        END::jsonb)
        FROM pg_attribute WHERE attrelid = kind.source AND attnum > 0 AND NOT attisdropped
    );
    table_name constant name := (SELECT relname FROM pg_class WHERE oid = kind.source);
    statement constant text := format(
        'SELECT string_agg(data::text, E''\n'') FROM (
            SELECT %s AS data FROM (
                SELECT (jsonb_populate_record(NULL::%s, %L)).*
                UNION ALL (SELECT * FROM %2$s ORDER BY %4$I DESC LIMIT 1000)
            ) %5$I
        ) each',
        kind.data, kind.source, made_up, kind.position_column, table_name
    );
    ours text;
    another text;
    settings constant text[] := ARRAY[
        'timezone', 'datestyle', 'intervalstyle', 'extra_float_digits', 'bytea_output'];
    before constant text[] := ARRAY(
        SELECT current_setting(each) FROM unnest(settings) WITH ORDINALITY named (each, n) ORDER BY n);
BEGIN
    PERFORM set_config(each, value, true) FROM unnest(
        settings, ARRAY['UTC', 'ISO, MDY', 'postgres', '1', 'hex']) given (each, value);
    EXECUTE statement INTO ours;
    PERFORM set_config(each, value, true) FROM unnest(
        settings, ARRAY['Asia/Kathmandu', 'German, DMY', 'sql_standard', '-10', 'escape']
    ) given (each, value);
    EXECUTE statement INTO another;
    PERFORM set_config(each, value, true) FROM unnest(settings, before) given (each, value);
    IF ours IS DISTINCT FROM another THEN
        RETURN 'its text depends on the session''s settings, as that of bare times and floats does: '
            'convert them, as in to_char(created_at AT TIME ZONE ''UTC'', '
            '''YYYY-MM-DD"T"HH24:MI:SS.US"Z"''), or in a numeric';
    END IF;
    RETURN NULL;
END $$;


-- Why this table and expression can't be a kind; null where they can.
CREATE FUNCTION log_kind_refusal(kind log_kinds) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    source_class pg_class;
    column_types text[];
    others text;
    found record;
BEGIN
    SELECT * INTO source_class FROM pg_class WHERE oid = kind.source;
    IF source_class.relkind NOT IN ('r', 'p') OR source_class.relpersistence = 't' THEN
        RETURN format('%s is not a table', kind.source);
    END IF;
    SELECT * INTO found FROM pg_attribute
    WHERE attrelid = kind.source AND attname = kind.position_column AND attnum > 0;
    IF found IS NULL OR found.atttypid <> 'bigint'::regtype OR NOT found.attnotnull THEN
        RETURN format('%s has no column %I that is bigint NOT NULL', kind.source, kind.position_column);
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_index WHERE indrelid = kind.source AND indisunique AND indisvalid
        AND indimmediate AND indnkeyatts = 1 AND indkey[0] = found.attnum AND indpred IS NULL
    ) THEN
        RETURN format('%s.%I has no unique index of its own', kind.source, kind.position_column);
    END IF;
    IF (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
        WHERE adrelid = kind.source AND adnum = found.attnum)
        IS DISTINCT FROM format('nextval(%L::regclass)', 'log_position'::regclass)
    THEN
        RETURN format('%s.%I does not draw from log_position: it needs DEFAULT nextval(''log_position'')',
                      kind.source, kind.position_column);
    END IF;
    -- By themselves, so that nothing of the other kinds hides what is wrong with these columns.
    BEGIN
        EXECUTE 'CREATE TEMP VIEW log_kind_probe AS ' || log_kind_select(kind);
    EXCEPTION WHEN OTHERS THEN
        RETURN format('its columns or its data can''t be read: %s', SQLERRM);
    END;
    SELECT array_agg(format_type(atttypid, atttypmod) ORDER BY attnum) INTO column_types
    FROM pg_attribute WHERE attrelid = 'pg_temp.log_kind_probe'::regclass;
    SELECT string_agg(DISTINCT refobjid::regclass::text, ', ') INTO others
    FROM pg_depend JOIN pg_rewrite ON pg_rewrite.oid = objid AND classid = 'pg_rewrite'::regclass
    WHERE ev_class = 'pg_temp.log_kind_probe'::regclass AND refclassid = 'pg_class'::regclass
      AND refobjid NOT IN (kind.source, ev_class);
    DROP VIEW pg_temp.log_kind_probe;
    IF column_types <> ARRAY['bigint', 'timestamp with time zone', 'text', 'jsonb'] THEN
        RETURN format('its position, its time and its data are %s, %s and %s, and have to be bigint, '
            'timestamp with time zone and jsonb', column_types[1], column_types[2], column_types[4]);
    END IF;
    IF others IS NOT NULL THEN
        RETURN format('its data is made of one row of %s, and also reads %s', kind.source, others);
    END IF;
    RETURN log_data_varies(kind);
END $$;


-- What a plan of the view does that takes longer the more records there are; null where nothing is.
CREATE FUNCTION log_records_scans() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    statement text;
    plan json;
    node text;
    before constant text[] := ARRAY[
        current_setting('enable_seqscan'), current_setting('enable_bitmapscan')];
BEGIN
    -- As in the sessions that look these up.
    PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
    FOREACH statement IN ARRAY ARRAY[
        'SELECT max(id) FROM log_records',
        'SELECT id, type, data::text FROM log_records WHERE id > 0 ORDER BY id LIMIT 1000'
    ] LOOP
        EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
        node := coalesce(node, (regexp_match(plan::text,
            '"Node Type": "(Sort|Incremental Sort|Seq Scan|Bitmap Heap Scan)"'))[1]);
    END LOOP;
    PERFORM set_config('enable_seqscan', before[1], true),
            set_config('enable_bitmapscan', before[2], true);
    RETURN node;
END $$;


-- Registers a kind of record: the rows of a table are the records of one type.
--
-- The table draws the position of each row from `log_position`, and its rows are never changed or
-- deleted. `data` is an expression over its columns. `stages` makes a trigger that stages each new
-- row: then no program can forget it, and none calls stage() for these rows.
--
-- Rows that the table has already are staged. Their positions must have been drawn in this very
-- transaction, such as by adding the column: else the log may have passed them.
CREATE FUNCTION attach(
    source regclass, position_column name, type text, data text,
    stages boolean DEFAULT false, created_at_column name DEFAULT 'created_at'
) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    kind log_kinds;
    why text;
    existing bigint;
BEGIN
    LOCK TABLE log_kinds IN SHARE ROW EXCLUSIVE MODE;
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', source); -- no row comes meanwhile
    IF EXISTS (SELECT FROM log_kinds known WHERE known.type = attach.type) THEN
        RAISE EXCEPTION 'the type % is attached already: a new meaning needs a new type', type
            USING ERRCODE = 'check_violation';
    END IF;
    IF EXISTS (SELECT FROM log_kinds known WHERE known.source = attach.source) THEN
        RAISE EXCEPTION 'the table % is a kind already: each of its rows has one record', source
            USING ERRCODE = 'check_violation';
    END IF;
    kind := ROW(type, source, position_column, created_at_column, format('(%s)', data), stages);
    INSERT INTO log_kinds SELECT kind.*; -- first: it checks the type
    why := log_kind_refusal(kind);
    IF why IS NULL THEN
        PERFORM generate_log_records();
        IF log_records_scans() IS NOT NULL THEN
            why := format('looking up its newest record would need a %s', log_records_scans());
        END IF;
    END IF;
    IF why IS NOT NULL THEN
        RAISE EXCEPTION '% can''t be a kind of record: %', type, why
            USING ERRCODE = 'check_violation';
    END IF;
    EXECUTE format('SELECT count(*) FROM %s WHERE xmin::text <> %L OR %I <= (SELECT last_sent_id '
                   'FROM streamer_state)', source, pg_current_xact_id()::xid::text, position_column)
        INTO existing;
    IF existing > 0 THEN
        RAISE EXCEPTION '% can''t be a kind of record: the log may have passed the positions of % rows, '
            'which were drawn before this transaction: draw new ones in it, as in UPDATE % SET % = '
            'nextval(''log_position'')', type, existing, source, position_column
            USING ERRCODE = 'check_violation';
    END IF;
    EXECUTE format('INSERT INTO staged_log_records (id, type, data) SELECT id, type, data '
                   'FROM (%s) existing', log_kind_select(kind));
    IF stages THEN
        EXECUTE format($create$
            CREATE FUNCTION %1$I() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = %2$s AS $body$
            BEGIN
                PERFORM stage(NEW.%3$I, %4$L, (SELECT %5$s FROM (SELECT NEW.*) %6$I));
                RETURN NULL;
            END $body$
            $create$, 'stage_' || replace(type, '.', '_'), current_setting('search_path'),
            position_column, type, kind.data, (SELECT relname FROM pg_class WHERE oid = source));
        EXECUTE format('CREATE TRIGGER stage AFTER INSERT ON %s FOR EACH ROW EXECUTE FUNCTION %I()',
                       source, 'stage_' || replace(type, '.', '_'));
    END IF;
END $$;


-- Takes a kind away that has no rows; refuses where it has some, since readers heal from them.
CREATE FUNCTION detach(type text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    kind log_kinds;
    has_rows boolean;
BEGIN
    LOCK TABLE log_kinds IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO kind FROM log_kinds known WHERE known.type = detach.type;
    IF kind.source IS NULL THEN
        RAISE EXCEPTION 'there is no kind %', type USING ERRCODE = 'check_violation';
    END IF;
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', kind.source);
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', kind.source) INTO has_rows;
    IF has_rows THEN
        RAISE EXCEPTION '% has rows, which readers heal from: it stays', type
            USING ERRCODE = 'check_violation';
    END IF;
    DELETE FROM log_kinds known WHERE known.type = detach.type;
    PERFORM generate_log_records();
    IF kind.stages THEN
        EXECUTE format('DROP TRIGGER stage ON %s', kind.source);
        EXECUTE format('DROP FUNCTION %I', 'stage_' || replace(type, '.', '_'));
    END IF;
END $$;

REVOKE EXECUTE ON FUNCTION attach, detach, generate_log_records FROM PUBLIC;
