-- The tables of the unified log: the positions, the kinds of records, the outbox, the streamer's and
-- the readers'. `unified_log/schema/__init__.py` applies it, in one transaction, in which the setting
-- `unified_log.cell` says which cell this is.
--
-- Times are instants.
--
-- A row that every batch updates has a rising `version`, last in its key, so that an index finds the
-- newest first. While a snapshot is held elsewhere (by a pg_dump, a forgotten session, a standby),
-- Postgres keeps all versions of a row, and who looks for it by an unchanged key reads them all. So
-- what runs for every batch reads
--
--     SELECT ... ORDER BY version DESC LIMIT 1
--
-- and writes
--
--     UPDATE ... SET ..., version = version + 1
--     WHERE ... AND version >= (SELECT version FROM ... ORDER BY version DESC LIMIT 1)
--
-- in a session that scans by index (`unified_log/session_settings.py`). Not `=`: who waits for another
-- update to commit goes on with what that has left, as everywhere. What is rare may do without: each
-- snapshot sees one row, whatever its version.

-- In the first schema of the caller's search_path. Functions keep this path (FROM CURRENT): no
-- caller's, and no temporary table, misleads them. `4_data.sql` ends with the caller's own again.
SELECT set_config('unified_log.callers_path', current_setting('search_path'), true);
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);


-- ------------------------------------------------------------------ the version

-- The revision of each component's schema, and the oldest code that it still serves.
--
-- `digest` is the SHA-256 of what made it: another schema of the same number is told from it.
-- Whoever applies this writes the row: `unified_log/schema/serving.py` reads it.
CREATE TABLE schema_versions (
    component text PRIMARY KEY,
    revision integer NOT NULL,
    serves_from integer NOT NULL,
    digest text NOT NULL CONSTRAINT schema_versions_digest CHECK (digest ~ '^[0-9a-f]{64}$'),
    CONSTRAINT schema_versions_serves_from CHECK (serves_from BETWEEN 1 AND revision)
);


-- ------------------------------------------------------------------ the cell

-- One row: the number of this log among others whose positions it must not share.
--
-- Its positions are `number * 10^14 + 1` and those after it, below `(number + 1) * 10^14`: so no two
-- cells have an id in common, and an id says whose it is. Up to cell 89 they are below 2^53, and so
-- exact in JavaScript, too.
CREATE TABLE cell (
    only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT cell_only_row CHECK (only_row),
    number integer NOT NULL CONSTRAINT cell_number CHECK (number BETWEEN 0 AND 89)
);

-- The migration says which.
INSERT INTO cell (number) VALUES (current_setting('unified_log.cell')::integer);

-- With another number, the ids that were given out would be another cell's.
CREATE FUNCTION refuse_another_cell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a cell''s number can''t be changed' USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER for_good BEFORE UPDATE OR DELETE OR TRUNCATE ON cell
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_another_cell();

-- The position before the cell's first, where all who follow the records begin.
--
-- It has its owner's rights: readers outside this project need it, and may not read `cell`.
CREATE FUNCTION cell_start() RETURNS bigint LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN (SELECT number * 100000000000000 FROM cell);

GRANT EXECUTE ON FUNCTION cell_start TO PUBLIC;


-- ------------------------------------------------------------------ the kinds of records

-- The numbers that every record draws: its position in the log. The streamer's barrier watches who
-- draws. CACHE 1: numbers that a session caches outlive the transaction that drew them, and would
-- break the barrier. It belongs to no table, so that no TRUNCATE ... RESTART IDENTITY sets it back.
CREATE SEQUENCE log_position AS bigint CACHE 1;

DO $$
BEGIN
    EXECUTE format(
        'ALTER SEQUENCE log_position MINVALUE %1$s START %1$s RESTART MAXVALUE %2$s',
        cell_start() + 1, cell_start() + 99999999999999
    );
END $$;

-- A kind of record: the table whose rows are the records of one type, and what makes a record of a
-- row.
--
-- `attach()` writes it, and generates the view `log_records` from it.
CREATE TABLE log_kinds (
    type text PRIMARY KEY CONSTRAINT log_kinds_type
        CHECK (type ~ '^[a-z][a-z0-9_]*([.][a-z0-9_]+)+$' AND length(type) <= 57),
    source regclass NOT NULL, -- the table
    position_column name NOT NULL,
    created_at_column name NOT NULL,
    data text NOT NULL, -- an expression over the row's columns, that gives jsonb
    stages boolean NOT NULL -- whether a trigger stages each new row
);

-- Every record, staged or sent, of whatever kind, as its own table has it: the truth from which
-- readers heal. Generated: attach() and detach() replace it. Nobody reads it while writing, since
-- that costs conflicts under SERIALIZABLE.
CREATE VIEW log_records AS
    SELECT NULL::bigint AS id, NULL::timestamptz AS created_at, NULL::text AS type,
           NULL::jsonb AS data
    WHERE false;


-- ------------------------------------------------------------------ the outbox

-- The outbox: records that are still to be sent to the log. The id is the record's position.
--
-- No foreign key: the transaction that stages a record is the one that inserts its row. Every row is
-- soon deleted, so a number of rows triggers vacuum, not a share of the table.
CREATE TABLE staged_log_records (
    id bigint PRIMARY KEY,
    type text NOT NULL,
    data jsonb NOT NULL,
    -- The context of its trace, where it belongs to one (`unified_log/tracing.py`).
    traceparent text,
    tracestate text,
    -- So the largest batch, of 2,000 records, is 16 MB: it goes to Redis, and from there to a
    -- reader, within their time-outs. What is larger stays in its own table, for handlers to find.
    CONSTRAINT staged_log_records_size CHECK (
        octet_length(type) + octet_length(data::text) <= 8192
    )
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- A record that is staged while the streamer sleeps wakes it (`streamer/doorbell.py`).
--
-- The sequence is a flag: the bell is armed while it has a last value. Sequences are outside of
-- transactions, so everyone sees at once what setval() wrote. Reading one waits for nobody, and a
-- SERIALIZABLE transaction takes no predicate lock for it.
CREATE SEQUENCE doorbell;

DO $outer$
BEGIN
    EXECUTE format($create$
-- Stages a record, in the transaction that has drawn its position and inserts its row.
--
-- With its owner's rights: whoever stages needs a right to this function, and to nothing else.
--
-- It refuses a position that nobody has drawn. It can't know whether another transaction drew it: the
-- barrier watches only the one that did, so the log may already have passed such a position. It does
-- not look whether the log has, which every record would pay for. The leader warns of stranded
-- records instead.
--
-- Whoever rings the bell also disarms it, so that the next records need not ring.
CREATE FUNCTION stage(
    "position" bigint, type text, data jsonb, traceparent text DEFAULT NULL, tracestate text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
#variable_conflict use_variable
BEGIN
    IF ("position" > %s AND "position" <= pg_sequence_last_value('log_position')) IS NOT TRUE THEN
        RAISE EXCEPTION 'position %% was not drawn from the sequence log_position',
            coalesce("position"::text, 'null') USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO staged_log_records VALUES ("position", type, data, traceparent, tracestate);
    IF pg_sequence_last_value('doorbell') IS NOT NULL THEN
        PERFORM pg_notify('doorbell', setval('doorbell', 1, false)::text);
    END IF;
END $$;
    $create$, cell_start());
END $outer$;

REVOKE EXECUTE ON FUNCTION stage FROM PUBLIC;


-- ------------------------------------------------------------------ the streamer

-- Refuses a second row; or, for a trigger that names a column, a second one with its value. A unique
-- index would have to read all versions of the first.
CREATE FUNCTION refuse_second() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    same constant text := CASE TG_NARGS WHEN 0 THEN ''
        ELSE format('WHERE %I = %L', TG_ARGV[0], to_jsonb(NEW) ->> TG_ARGV[0]) END;
    is_there boolean;
BEGIN
    EXECUTE format('SELECT EXISTS (SELECT FROM %s %s)', TG_RELID::regclass, same) INTO is_there;
    IF is_there THEN
        RAISE EXCEPTION '% has this row already', TG_TABLE_NAME USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END $$;

-- One row: the position of the last record that the streamer sent and committed, and how many it has
-- sent in all.
--
-- Each record counts once; also one that `unified_log.repair` took out of the outbox unsent. Together
-- with what is staged, that is all of `log_records`.
CREATE TABLE streamer_state (
    version bigint PRIMARY KEY DEFAULT 0,
    last_sent_id bigint NOT NULL DEFAULT cell_start()
        CONSTRAINT streamer_state_last_sent CHECK (last_sent_id >= 0),
    records_sent bigint NOT NULL DEFAULT 0
        CONSTRAINT streamer_state_records_sent CHECK (records_sent >= 0)
);

CREATE TRIGGER one_row BEFORE INSERT ON streamer_state
    FOR EACH ROW EXECUTE FUNCTION refuse_second();

INSERT INTO streamer_state DEFAULT VALUES;

-- One leader's term: its entries count for `after < id`, up to where the next term begins.
--
-- `replaced` are the terms that it replaced: nothing that was sent under them counts.
-- `unified_log/terms.py` says what that is for.
CREATE TABLE terms (
    after bigint PRIMARY KEY CONSTRAINT terms_after CHECK (after >= 0),
    term text NOT NULL UNIQUE CONSTRAINT terms_term CHECK (term ~ '^[0-9a-f]{16}$'),
    replaced text[] NOT NULL DEFAULT '{}',
    began_at timestamptz NOT NULL DEFAULT now()
);


-- ------------------------------------------------------------------ the readers of the log

-- Who reads the log: a row for each checkpoint, written with it, and never updated.
--
-- A name is unique among readers of the same kind: a total and a ranking may both be named "main".
-- What belongs to a reader refers to it by a foreign key, and goes with it.
CREATE TABLE readers (
    kind text CONSTRAINT readers_kind CHECK (length(kind) BETWEEN 1 AND 64),
    name text CONSTRAINT readers_name CHECK (length(name) BETWEEN 1 AND 64),
    PRIMARY KEY (kind, name)
);

-- Where a reader stands: its newest version, which `current_checkpoints` shows.
--
-- A reader that gives no kind is a program of another sort. Who inserts one that is there already
-- inserts nothing.
--
-- The counters move in the transactions of the work that they count. Programs of another sort
-- leave them at 0.
CREATE TABLE checkpoints (
    kind text DEFAULT 'outside',
    name text,
    version bigint DEFAULT 0,
    -- Two numbers of 64 bits. No backslash: what it means in a literal depends on a setting.
    last_redis_id text NOT NULL DEFAULT '0-0' CONSTRAINT checkpoints_last_redis_id CHECK (
        CASE WHEN last_redis_id ~ '^[0-9]+-[0-9]+$'
        THEN split_part(last_redis_id, '-', 1)::numeric <= 18446744073709551615
         AND split_part(last_redis_id, '-', 2)::numeric <= 18446744073709551615
        ELSE false END
    ),
    position bigint NOT NULL DEFAULT cell_start()
        CONSTRAINT checkpoints_position CHECK (position >= 0),
    -- The types of records that it handles; it passes over others, and counts them.
    types text[] NOT NULL DEFAULT '{}',
    entries_passed bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_entries_passed CHECK (entries_passed >= 0),
    -- Entries that it skipped: another database's, never committed, or revoked by a repair.
    entries_ignored bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_entries_ignored CHECK (entries_ignored >= 0),
    gaps_healed bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_gaps_healed CHECK (gaps_healed >= 0),
    -- Of its own types.
    records_healed bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_records_healed CHECK (records_healed >= 0),
    -- Too low for readers that begin at a lower position: they take re-sends from there on for new.
    resends_skipped bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_resends_skipped CHECK (resends_skipped >= 0),
    entries_malformed bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_entries_malformed CHECK (entries_malformed >= 0),
    -- Each is counted by the next session, since the crash undid its own transaction.
    crashes_injected bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_crashes_injected CHECK (crashes_injected >= 0),
    resets_applied bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_resets_applied CHECK (resets_applied >= 0),
    -- The furthest position that it had ever reached when it was last set back: below it, it meets
    -- again what it has counted before.
    furthest bigint NOT NULL DEFAULT cell_start()
        CONSTRAINT checkpoints_furthest CHECK (furthest >= 0),
    -- Records that were held out since it last counted one: after a few, it stands still.
    refusals_in_a_row integer NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_refusals_in_a_row CHECK (refusals_in_a_row >= 0),
    counted_at timestamptz, -- when `position` last rose
    -- Somebody asks the reader to make its state anew. Null: it can't be asked, and has a hook of its
    -- own instead (`set_back_hooks`).
    recount boolean DEFAULT false,
    PRIMARY KEY (kind, name, version),
    FOREIGN KEY (kind, name) REFERENCES readers (kind, name)
);

-- They have their owner's rights: a program that may write to `checkpoints` needs no others.
CREATE FUNCTION add_reader() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO readers VALUES (NEW.kind, NEW.name) ON CONFLICT DO NOTHING; -- waits for another's
    RETURN CASE WHEN NOT EXISTS (
        SELECT FROM checkpoints WHERE (kind, name) = (NEW.kind, NEW.name)
    ) THEN NEW END;
END $$;

CREATE FUNCTION remove_reader() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM readers WHERE kind = OLD.kind AND name = OLD.name;
    RETURN NULL;
END $$;

CREATE TRIGGER added BEFORE INSERT ON checkpoints FOR EACH ROW EXECUTE FUNCTION add_reader();
CREATE TRIGGER removed AFTER DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION remove_reader();

-- For whoever only reads them.
CREATE VIEW current_checkpoints AS
    SELECT newest.* FROM readers CROSS JOIN LATERAL (
        SELECT * FROM checkpoints WHERE (kind, name) = (readers.kind, readers.name)
        ORDER BY version DESC LIMIT 1
    ) newest;

-- A reader that a person has removed on purpose, so that nobody misses it.
CREATE TABLE removed_readers (
    kind text NOT NULL,
    name text NOT NULL,
    removed_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- its transaction may have waited
    removed_by text NOT NULL DEFAULT session_user,
    position bigint NOT NULL CONSTRAINT removed_readers_position CHECK (position >= 0),
    PRIMARY KEY (kind, name, removed_at)
);

-- A malformed entry of the log, which is not a record, kept verbatim: names and values in turn.
CREATE TABLE malformed_entries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_kind text NOT NULL,
    consumer_name text NOT NULL,
    redis_id text NOT NULL,
    fields bytea[] NOT NULL,
    reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (consumer_kind, consumer_name, redis_id)
);

-- A record that its consumer's handler, or Postgres on its behalf, refuses: held out of the state, so
-- that all others count.
--
-- `unified_log/readers/held_out.py` says which errors hold a record out.
--
-- A row stays until the record is counted: by a retry, a reset or a recount. One that is dropped is
-- given up, and still named: the state lacks it.
CREATE TABLE held_out_records (
    kind text NOT NULL,
    name text NOT NULL,
    "position" bigint NOT NULL,
    type text NOT NULL,
    sqlstate text, -- null where the handler itself, or what parses the record, refused it
    reason text NOT NULL,
    attempts integer NOT NULL DEFAULT 1
        CONSTRAINT held_out_records_attempts CHECK (attempts > 0),
    held_out_at timestamptz NOT NULL DEFAULT now(),
    retry boolean NOT NULL DEFAULT false, -- somebody asks the consumer to try it again
    dropped_at timestamptz,
    PRIMARY KEY (kind, name, "position"),
    FOREIGN KEY (kind, name) REFERENCES readers (kind, name) ON DELETE CASCADE,
    CONSTRAINT held_out_records_dropped CHECK (NOT (retry AND dropped_at IS NOT NULL))
);

-- Asked about with every batch: nearly always empty.
CREATE INDEX held_out_records_retry ON held_out_records (kind, name) WHERE retry;
-- Those that wait for a decision: looking at them does not visit those that were dropped.
CREATE INDEX held_out_records_undecided ON held_out_records (kind, name) WHERE dropped_at IS NULL;

-- What else must look again from a position on when records up to there are repaired: functions that
-- take the lowest position (`unified_log/repair.py`).
--
-- An application adds its own.
CREATE TABLE set_back_hooks (
    function regprocedure PRIMARY KEY
);
