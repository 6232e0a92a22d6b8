-- Kinds of records are registered: attach() checks a table and an expression (in the files after
-- this one), writes them down, and generates the view `log_records` anew. Two branches of work that
-- each attach a kind both have it.
--
-- For the owner of the tables, in a migration. What would break the log is refused, in a sentence.


-- The SELECT of one kind, as it stands in the view. The cast takes away a precision, as in
-- timestamptz(3): the view could not be replaced by one with another.
CREATE FUNCTION log_kind_select(kind log_kinds) RETURNS text LANGUAGE sql STABLE
SET search_path FROM CURRENT
RETURN format(
    'SELECT %1$I.%2$I AS id, %1$I.%3$I::timestamptz AS created_at, %4$L::text AS type, %5$s AS data '
    'FROM %6$s %1$I',
    (SELECT relname FROM pg_class WHERE oid = kind.source),
    kind.position_column, kind.created_at_column, kind.type, kind.data, kind.source
);


CREATE FUNCTION generate_log_records() RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
    -- Without a kind whose table was dropped, which detach() takes away.
    kinds text := (SELECT string_agg(log_kind_select(each), E'\nUNION ALL\n' ORDER BY type)
                   FROM log_kinds each JOIN pg_class ON oid = source);
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW log_records AS ' || coalesce(kinds,
        'SELECT NULL::bigint AS id, NULL::timestamptz AS created_at, NULL::text AS type,
                NULL::jsonb AS data WHERE false');
EXCEPTION WHEN undefined_column OR undefined_table THEN
    RAISE EXCEPTION 'a table of a kind was changed: tell log_kinds the new names first (%)', SQLERRM
        USING ERRCODE = 'check_violation';
END $$;


-- A trigger of the table that stages each new row, made of NEW by the kind's expression.
--
-- With its owner's rights: whoever inserts needs none to stage().
CREATE FUNCTION stage_by_trigger(kind log_kinds) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT AS $outer$
BEGIN
    EXECUTE format(
        'CREATE FUNCTION %I() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
         SET search_path FROM CURRENT AS %L',
        'stage ' || kind.type,
        format($body$
#variable_conflict use_column
BEGIN
    PERFORM stage(NEW.%I, %L, (SELECT %s FROM (SELECT NEW.*) %I));
    RETURN NULL;
END $body$,
            kind.position_column, kind.type, kind.data,
            (SELECT relname FROM pg_class WHERE oid = kind.source))
    );
    -- On a table of one's own, it would stage whatever one likes.
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %I FROM PUBLIC', 'stage ' || kind.type);
    EXECUTE format('CREATE TRIGGER stage_record AFTER INSERT ON %s FOR EACH ROW EXECUTE FUNCTION %I()',
                   kind.source, 'stage ' || kind.type);
END $outer$;


-- What attach() does; `callers_path` is the search_path in which `data` is meant.
CREATE FUNCTION attach_kind(
    source regclass, position_column name, created_at_column name, type text, data text,
    stages boolean, callers_path text
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_variable
DECLARE
    kind log_kinds := ROW(type, source, position_column, created_at_column, data, stages);
    why text;
BEGIN
    -- After a wait for a lock it has to see what others have committed: other kinds, and rows.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'attach() needs READ COMMITTED: begin its transaction with that'
            USING ERRCODE = 'check_violation';
    END IF;
    LOCK TABLE log_kinds IN SHARE ROW EXCLUSIVE MODE;
    why := coalesce(log_kind_known(kind), log_source_refusal(kind));
    IF why IS NULL THEN
        EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', source); -- no row comes meanwhile
        SELECT refusal, meaning INTO why, kind.data FROM log_data_meaning(kind, callers_path);
    END IF;
    why := coalesce(why, log_data_varies(kind), log_rows_refusal(kind));
    IF why IS NULL THEN
        INSERT INTO log_kinds SELECT kind.*;
        PERFORM generate_log_records();
        why := log_records_scans();
    END IF;
    IF why IS NOT NULL THEN
        RAISE EXCEPTION '% can''t be a kind of record: %', quote_literal(type), why
            USING ERRCODE = 'check_violation';
    END IF;
    EXECUTE format('INSERT INTO staged_log_records (id, type, data) SELECT id, type, data '
                   'FROM (%s) existing', log_kind_select(kind));
    IF stages THEN
        PERFORM stage_by_trigger(kind);
    END IF;
END $$;

-- Registers a kind of record: the rows of a table are the records of one type.
--
-- The table draws the position of each row from `log_position`, and its rows are never changed or
-- deleted. `data` is an expression over one row of it, in the words of the caller's search_path.
-- `stages` makes a trigger that stages each new row: then no program can forget it, and none calls
-- stage() for these rows.
--
-- Rows that the table has already are staged. Their positions must have been drawn in this very
-- transaction, such as by adding the column: else the log may have passed them. Readers of the view
-- wait until the transaction ends: attach last.
CREATE FUNCTION attach(
    source regclass, position_column name, type text, data text,
    stages boolean DEFAULT false, created_at_column name DEFAULT 'created_at'
) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    SELECT attach_kind(source, position_column, created_at_column, type, data, stages,
                       pg_catalog.current_setting('search_path'));
END;


-- Takes a kind away that has no rows; refuses where it has some, since readers heal from them.
CREATE FUNCTION detach(type text) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    kind log_kinds;
    has_rows boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'detach() needs READ COMMITTED: begin its transaction with that'
            USING ERRCODE = 'check_violation';
    END IF;
    LOCK TABLE log_kinds IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO kind FROM log_kinds WHERE type = detach.type;
    IF kind.type IS NULL THEN
        RAISE EXCEPTION 'there is no kind %', quote_nullable(detach.type)
            USING ERRCODE = 'check_violation';
    END IF;
    IF EXISTS (SELECT FROM pg_class WHERE oid = kind.source) THEN -- else it was dropped
        EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', kind.source);
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', kind.source) INTO has_rows;
        IF has_rows THEN
            RAISE EXCEPTION '% has rows, from which readers heal: it stays', quote_literal(detach.type)
                USING ERRCODE = 'check_violation';
        END IF;
        IF kind.stages THEN
            EXECUTE format('DROP TRIGGER stage_record ON %s', kind.source);
        END IF;
    END IF;
    DELETE FROM log_kinds WHERE type = detach.type;
    PERFORM generate_log_records();
    IF kind.stages THEN
        EXECUTE format('DROP FUNCTION %I', 'stage ' || kind.type);
    END IF;
END $$;

REVOKE EXECUTE ON FUNCTION attach, attach_kind, detach, generate_log_records, stage_by_trigger
    FROM PUBLIC;
