-- The data of a kind: the expression is checked, and kept as what it means.


-- `meaning`: the expression with each name in full, so that it means the same under every
-- search_path. Refused if it is anything but jsonb that one row says, always the same.
CREATE FUNCTION log_data_meaning(kind log_kinds, callers_path text, OUT refusal text, OUT meaning text)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    path constant text := current_setting('search_path');
    probe constant text := format('%I.log_kind_probe', current_schema());
    table_name constant name := (SELECT relname FROM pg_class WHERE oid = kind.source);
    tree text; -- its parsed expression
    called text;
BEGIN
    BEGIN
        PERFORM set_config('search_path', callers_path, true);
        EXECUTE format('CREATE VIEW %s AS SELECT (%s) AS log_kind_data FROM %s %I',
                       probe, kind.data, kind.source, table_name);
        PERFORM set_config('search_path', path, true);
    EXCEPTION WHEN OTHERS THEN -- also undoes the set_config
        refusal := format('its data can''t be read from one row of %s: %s', kind.source, SQLERRM);
        RETURN;
    END;
    SELECT ev_action::text INTO tree FROM pg_rewrite WHERE ev_class = probe::regclass;
    SELECT string_agg(DISTINCT oid::regprocedure::text, ', ') INTO called FROM pg_proc
    WHERE oid IN (SELECT id[1]::oid FROM regexp_matches(tree, ':(?:funcid|opfuncid) (\d+)', 'g') id)
      AND provolatile <> 'i'
      -- These only depend on settings, which log_data_varies() changes.
      AND NOT (provolatile = 's' AND pronamespace = 'pg_catalog'::regnamespace AND proname ~ '^('
          'to_jsonb?|row_to_json|jsonb?_build_(array|object)|array_to_(json|string)|format|'
          'concat(_ws)?|to_char|extract|timezone|(date|timetz|timestamp|timestamptz)(_.*)?)$');
    refusal := CASE
        WHEN (SELECT array_agg(atttypid::regtype) FROM pg_attribute WHERE attrelid = probe::regclass)
             <> ARRAY['jsonb'::regtype]
        THEN format('its data is %s, and has to be jsonb', (SELECT string_agg(
            format_type(atttypid, atttypmod), ', ') FROM pg_attribute WHERE attrelid = probe::regclass))
        WHEN tree ~ ':has(SubLinks|Aggs|WindowFuncs|TargetSRFs) true|:varattno -'
        THEN format('its data is an expression over the columns of one row of %s: no subquery, no '
            'aggregate, no set, no system column', kind.source)
        WHEN tree ~ '[{]SQLVALUEFUNCTION ' OR called IS NOT NULL
        THEN format('its data would not always be the same for a row: it calls %s, not IMMUTABLE',
            coalesce(called, 'current_date, current_user or the like'))
    END;
    meaning := substring(pg_get_viewdef(probe::regclass)
                         FROM '^ SELECT\s+(.*) AS log_kind_data\n   FROM [^\n]*;$');
    EXECUTE 'DROP VIEW ' || probe;
END $$;


-- A value of the type, as text, if its text depends on the session; else null.
CREATE FUNCTION log_value_that_varies(type regtype) RETURNS text LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT AS $$
DECLARE
    found pg_type := (SELECT pg_type FROM pg_type WHERE oid = type);
BEGIN
    RETURN CASE
        WHEN found.typtype = 'd' THEN log_value_that_varies(found.typbasetype)
        WHEN found.typtype = 'r' THEN '["' || log_value_that_varies(
            (SELECT rngsubtype FROM pg_range WHERE rngtypid = type)) || '",)'
        WHEN found.typtype = 'c' THEN (SELECT format('(%s)', string_agg(coalesce(
            '"' || replace(replace(log_value_that_varies(atttypid), '\', '\\'), '"', '""') || '"', ''),
            ',' ORDER BY attnum))
            FROM pg_attribute WHERE attrelid = found.typrelid AND attnum > 0 AND NOT attisdropped)
        WHEN found.typcategory = 'A' THEN ARRAY[log_value_that_varies(found.typelem)]::text
        WHEN found.typcategory = 'D' THEN '2000-12-31 22:05:06.789+00'
        WHEN found.typcategory = 'T' THEN '1 mon 2 days 03:04:05.678'
        WHEN type IN ('float4'::regtype, 'float8'::regtype) THEN '0.123456789012345678'
        WHEN type = 'bytea'::regtype THEN '\x5c00ff'
    END;
END $$;


-- The same as an expression of the type; of the type below it, if it is a domain, whose constraints
-- such a value need not meet. Null where the type takes no such value.
CREATE FUNCTION log_literal_that_varies(type regtype) RETURNS text LANGUAGE plpgsql STABLE
SET search_path FROM CURRENT AS $$
DECLARE
    below regtype := (SELECT nullif(typbasetype, 0) FROM pg_type WHERE oid = type);
    literal text := format('%L::%s', log_value_that_varies(type), type);
BEGIN
    IF below IS NOT NULL THEN
        RETURN log_literal_that_varies(below);
    END IF;
    EXECUTE 'SELECT ' || literal;
    RETURN literal;
EXCEPTION WHEN OTHERS THEN
    RETURN format('NULL::%s', type);
END $$;


-- Refuses what is said otherwise in another session, since its settings change texts.
--
-- The expression is evaluated over the newest rows, and over one row that is made up of values whose
-- text varies: once as our sessions have it, once as another might.
CREATE FUNCTION log_data_varies(kind log_kinds) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET timezone = 'UTC' SET datestyle = 'ISO, MDY'
SET intervalstyle = 'postgres' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $$
DECLARE
    table_name constant name := (SELECT relname FROM pg_class WHERE oid = kind.source);
    made_up constant text := (
        SELECT format('SELECT %s', string_agg(format('%s AS %I', log_literal_that_varies(atttypid),
                                                     attname), ', ' ORDER BY attnum))
        FROM pg_attribute WHERE attrelid = kind.source AND attnum > 0 AND NOT attisdropped
    );
    newest constant text := format('SELECT * FROM %s ORDER BY %I DESC LIMIT 1000',
                                   kind.source, kind.position_column);
    queries constant text[] := ARRAY(
        SELECT format('SELECT string_agg((%s)::text, E''\n'') FROM (%s) %I', kind.data, rows, table_name)
        FROM unnest(ARRAY[made_up, newest]) rows);
    ours constant text[] := ARRAY(SELECT log_texts(query) FROM unnest(queries) query);
BEGIN
    PERFORM set_config(each, value, true) FROM (VALUES ('timezone', '<+0545>-05:45'),
        ('datestyle', 'German, DMY'), ('intervalstyle', 'sql_standard'),
        ('extra_float_digits', '-10'), ('bytea_output', 'escape')) given (each, value);
    RETURN CASE WHEN ours <> ARRAY(SELECT log_texts(query) FROM unnest(queries) query) THEN
        'the text of its data depends on the session''s settings, as that of bare times and floats '
        'does: write to_char(created_at AT TIME ZONE ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"''), '
        'and a float as a numeric' END;
END $$;


-- What the query returns; null where it fails, as an expression may for values that are made up.
CREATE FUNCTION log_texts(query text) RETURNS text LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    found text;
BEGIN
    EXECUTE query INTO found;
    RETURN found;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;


SELECT set_config('search_path', current_setting('unified_log.callers_path'), true);
