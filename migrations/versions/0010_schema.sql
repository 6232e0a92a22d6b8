-- The tables of the log: the outbox, the streamer's, the readers', and the reconciliation's. Those
-- of the application are in `kinds/`; another application replaces those files (docs/lift-it.md).
--
-- Distances are in metres, with exactly three decimals; times are instants. 'NaN' is greater than
-- every number in Postgres: an upper bound keeps it out, a lower one does not. Where rows are
-- updated often, pages keep free space (fillfactor), so that an update stays in its page.


-- ------------------------------------------------------------------ the cell

-- One row: this fleet's number among the cells behind one router.
--
-- Its positions are `number * 10^14 + 1` and those after it, below `(number + 1) * 10^14`: so no two
-- cells have an id in common, and an id says whose it is. Up to cell 89 they are below 2^53, and so
-- exact in JavaScript, too.
CREATE TABLE cell (
    only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT cell_only_row CHECK (only_row),
    number integer NOT NULL CONSTRAINT cell_number CHECK (number BETWEEN 0 AND 89)
);

-- The migration says which.
INSERT INTO cell (number) VALUES (current_setting('rocket_rides.cell')::integer);

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


-- ------------------------------------------------------------------ the outbox

-- The outbox: records that are still to be sent to the log. The id is the record's position, and the
-- id of its row. In the log, its type is `object.action`.
--
-- No foreign key: the one statement that stages a record is the one that inserts its row. Every row
-- is soon deleted, so a number of rows triggers vacuum, not a share of the table.
CREATE TABLE staged_log_records (
    id bigint PRIMARY KEY,
    action text NOT NULL,
    object text NOT NULL,
    data jsonb NOT NULL,
    -- The context of its trace, where it belongs to one (`unified_log/tracing.py`).
    traceparent text,
    tracestate text,
    -- So the largest batch, of 2,000 records, is 16 MB: it goes to Redis, and from there to a
    -- reader, within their time-outs. What is larger stays in its own table, for handlers to find.
    CONSTRAINT staged_log_records_size CHECK (
        octet_length(object) + octet_length(action) + octet_length(data::text) <= 8192
    )
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- A record that is staged while the streamer sleeps wakes it (`unified_log/streamer/doorbell.py`).
--
-- The sequence is a flag: the bell is armed while it has a last value. Sequences are outside of
-- transactions, so everyone sees at once what setval() wrote. Reading one waits for nobody, and a
-- SERIALIZABLE transaction takes no predicate lock for it.
CREATE SEQUENCE doorbell;

-- Whoever rings also disarms it, so that the next records need not ring. The function has its owner's
-- rights, so that no record is refused or delayed for want of a right to the sequence.
CREATE FUNCTION ring_doorbell() RETURNS void LANGUAGE sql VOLATILE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN pg_sequence_last_value('doorbell'::regclass) IS NOT NULL
            THEN pg_notify('doorbell', setval('doorbell'::regclass, 1, false)::text) END;

GRANT EXECUTE ON FUNCTION ring_doorbell TO PUBLIC;


-- ------------------------------------------------------------------ the streamer

-- One row: the position of the last record that the streamer sent and committed, and how many it has
-- sent in all.
--
-- Each record counts once; also one that `unified_log.repair` took out of the outbox unsent. Together
-- with what is staged, that is all of `log_records`.
CREATE TABLE streamer_state (
    only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT streamer_state_only_row CHECK (only_row),
    last_sent_id bigint NOT NULL DEFAULT cell_start()
        CONSTRAINT streamer_state_last_sent CHECK (last_sent_id >= 0),
    records_sent bigint NOT NULL DEFAULT 0
        CONSTRAINT streamer_state_records_sent CHECK (records_sent >= 0)
) WITH (fillfactor = 50);

INSERT INTO streamer_state DEFAULT VALUES;

-- One leader's term: its entries count for `after < id`, up to where the next term begins.
--
-- `void` are the terms that it replaced: nothing that was sent under them counts.
-- `unified_log/terms.py` says what that is for.
CREATE TABLE terms (
    after bigint PRIMARY KEY CONSTRAINT terms_after CHECK (after >= 0),
    term text NOT NULL UNIQUE CONSTRAINT terms_term CHECK (term ~ '^[0-9a-f]{16}$'),
    void text[] NOT NULL DEFAULT '{}',
    began_at timestamptz NOT NULL DEFAULT now()
);


-- ------------------------------------------------------------------ the readers of the log

-- Where a reader stands.
--
-- A name is unique among readers of the same kind: a total named "rollup" is not the rollup. A
-- reader that gives no kind is a program outside of this project.
--
-- The counters move in the transactions of the work that they count. Readers outside of this
-- project leave them at 0.
CREATE TABLE checkpoints (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL DEFAULT 'outside'
        CONSTRAINT checkpoints_kind CHECK (length(kind) BETWEEN 1 AND 64),
    name text NOT NULL CONSTRAINT checkpoints_name CHECK (length(name) BETWEEN 1 AND 64),
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
    -- Entries that it skipped: another database's, never committed, or disowned by a repair.
    entries_not_ours bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_entries_not_ours CHECK (entries_not_ours >= 0),
    gaps_healed bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_gaps_healed CHECK (gaps_healed >= 0),
    -- Of its own types.
    records_healed bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_records_healed CHECK (records_healed >= 0),
    -- Too low for the rollup: its new leader begins at a lower position, and takes re-sends from
    -- there on for new records.
    resends_skipped bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_resends_skipped CHECK (resends_skipped >= 0),
    entries_set_aside bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_entries_set_aside CHECK (entries_set_aside >= 0),
    -- Each is counted by the next session, since the crash undid its own transaction.
    crashes_injected bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_crashes_injected CHECK (crashes_injected >= 0),
    resets_applied bigint NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_resets_applied CHECK (resets_applied >= 0),
    -- The furthest position that it had ever reached when it was last set back.
    furthest bigint NOT NULL DEFAULT cell_start()
        CONSTRAINT checkpoints_furthest CHECK (furthest >= 0),
    distance_healed numeric(38,3) NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_distance_healed
        CHECK (distance_healed >= 0 AND distance_healed <> 'NaN'),
    counted_at timestamptz, -- when `position` last rose
    -- Somebody asks the reader to make its state anew from the table of its records.
    recount boolean NOT NULL DEFAULT false,
    UNIQUE (kind, name)
) WITH (fillfactor = 50);

-- What a consumer has added up. Moves with its checkpoint, in one transaction.
CREATE TABLE consumer_states (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL DEFAULT 'total' CONSTRAINT consumer_states_kind CHECK (kind = 'total'),
    name text NOT NULL UNIQUE,
    total_distance numeric(38,3) NOT NULL DEFAULT 0
        CONSTRAINT consumer_states_total_distance
        CHECK (total_distance >= 0 AND total_distance <> 'NaN'),
    -- How many rides these are: what cancels in the metres need not cancel here.
    rides bigint NOT NULL DEFAULT 0 CONSTRAINT consumer_states_rides CHECK (rides >= 0),
    FOREIGN KEY (kind, name) REFERENCES checkpoints (kind, name) ON DELETE CASCADE
) WITH (fillfactor = 50);

-- A reader that a person has removed (`python -m consumers.remove`), so that the reconciliation does
-- not miss it.
CREATE TABLE removed_readers (
    kind text NOT NULL,
    name text NOT NULL,
    removed_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- its transaction may have waited
    removed_by text NOT NULL DEFAULT session_user,
    position bigint NOT NULL CONSTRAINT removed_readers_position CHECK (position >= 0),
    PRIMARY KEY (kind, name, removed_at)
);

-- A log entry that is not a record, set aside verbatim: names and values in turn.
CREATE TABLE set_aside_entries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    consumer_kind text NOT NULL DEFAULT 'total',
    consumer_name text NOT NULL,
    redis_id text NOT NULL,
    fields bytea[] NOT NULL,
    reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (consumer_kind, consumer_name, redis_id)
);


-- ------------------------------------------------------------------ the rollup

-- The rides up to `upto` that were taken in a minute: how many, and their distance.
--
-- Minutes are in UTC. Other zones have the same ones, except where an old offset had seconds.
CREATE TABLE ride_minutes (
    minute timestamptz PRIMARY KEY CONSTRAINT ride_minutes_minute
        CHECK (isfinite(minute) AND minute = date_trunc('minute', minute, 'UTC')),
    rides bigint NOT NULL CONSTRAINT ride_minutes_rides CHECK (rides >= 0),
    distance numeric(38,3) NOT NULL
        CONSTRAINT ride_minutes_distance CHECK (distance >= 0 AND distance <> 'NaN'),
    upto bigint NOT NULL CONSTRAINT ride_minutes_upto CHECK (upto >= 0)
) WITH (fillfactor = 50);

-- One row: up to which ride every minute is right, and the generation that may raise that:
-- `consumers/rollup/generation.py`.
CREATE TABLE rollup_state (
    only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT rollup_state_only_row CHECK (only_row),
    complete_to bigint NOT NULL DEFAULT cell_start()
        CONSTRAINT rollup_state_complete_to CHECK (complete_to >= 0),
    generation text NOT NULL DEFAULT ''
        CONSTRAINT rollup_state_generation CHECK (generation ~ '^([0-9a-f]{16})?$'),
    -- The generation whose Ick may still be in Redis: a repair begins a generation without one.
    ick text NOT NULL DEFAULT '' CONSTRAINT rollup_state_ick CHECK (ick ~ '^([0-9a-f]{16})?$')
) WITH (fillfactor = 50);

INSERT INTO rollup_state DEFAULT VALUES;

-- A minute that could not be computed, and why. `retry`: somebody asked to try it again.
CREATE TABLE set_aside_minutes (
    minute timestamptz PRIMARY KEY,
    lowest_ride_id bigint NOT NULL,
    reason text NOT NULL,
    attempts integer NOT NULL,
    set_aside_at timestamptz NOT NULL DEFAULT now(),
    retry boolean NOT NULL DEFAULT false
);


-- ------------------------------------------------------------------ the receipts

-- The inbox and the queue of receipts, a row for each ride: `consumers/receipts/statements.py`.
--
-- A row is open until it has an outcome, and again while a dead letter is replayed. An open row is
-- due from `due_at` on: a worker takes it with a lease, and nobody else takes it before the lease
-- has run out.
--
-- No foreign key to rides: each INSERT would lock its ride.
CREATE TABLE receipts (
    ride_id bigint PRIMARY KEY,
    outcome text CONSTRAINT receipts_outcome CHECK (outcome IN ('delivered', 'dead')),
    -- Attempts ever begun: each is recorded before it is made.
    attempts integer NOT NULL DEFAULT 0 CONSTRAINT receipts_attempts CHECK (attempts >= 0),
    -- Of these, how many don't count: the receiver was away, the worker was stopped, or a replay
    -- came after them.
    excused integer NOT NULL DEFAULT 0
        CONSTRAINT receipts_excused CHECK (excused BETWEEN 0 AND attempts),
    -- How many of the latest attempts, in a row, have no known end.
    unfinished integer NOT NULL DEFAULT 0
        CONSTRAINT receipts_unfinished CHECK (unfinished BETWEEN 0 AND attempts),
    -- The attempt's fencing token, drawn at random each time; null once its end is known.
    lease uuid,
    queued_at timestamptz NOT NULL DEFAULT now(),
    first_at timestamptz, -- its first attempt
    due_at timestamptz NOT NULL DEFAULT now(),
    reason text, -- why the last attempt failed
    decided_at timestamptz,
    replay_at timestamptz,
    dropped_at timestamptz,
    -- The ride's trace, as its log entry has it; null for a ride that was swept.
    traceparent text,
    tracestate text,
    CONSTRAINT receipts_decided_at CHECK ((outcome IS NULL) = (decided_at IS NULL)),
    -- Only what is dead is replayed or dropped, and not both.
    CONSTRAINT receipts_dead CHECK (
        num_nonnulls(replay_at, dropped_at) = 0
        OR (outcome = 'dead') IS TRUE AND num_nonnulls(replay_at, dropped_at) < 2
    )
) WITH (autovacuum_vacuum_scale_factor = 0.02);

-- The queue: what is open, the oldest first. What is quarantined has an index of its own, so that a
-- look at the queue does not read it again and again.
CREATE INDEX receipts_due ON receipts (due_at)
    WHERE (outcome IS NULL OR replay_at IS NOT NULL) AND unfinished < 2;
CREATE INDEX receipts_quarantined ON receipts (unfinished, due_at)
    WHERE (outcome IS NULL OR replay_at IS NOT NULL) AND unfinished >= 2;
CREATE INDEX receipts_dead ON receipts (ride_id) WHERE outcome = 'dead';
CREATE INDEX receipts_replay ON receipts (replay_at) WHERE replay_at IS NOT NULL;
-- Those that wait for somebody's decision: counting them does not visit those that were dropped.
CREATE INDEX receipts_waiting ON receipts (ride_id)
    WHERE outcome = 'dead' AND dropped_at IS NULL AND replay_at IS NULL;

-- One row. Up to `inbox_to` every settled ride has a row in receipts, up to `complete_to` an outcome.
--
-- `set_backs`: how often both were set back; whoever moves them compares this, too.
CREATE TABLE receipts_state (
    only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT receipts_state_only_row CHECK (only_row),
    inbox_to bigint NOT NULL DEFAULT cell_start(),
    complete_to bigint NOT NULL DEFAULT cell_start()
        CONSTRAINT receipts_state_complete_to CHECK (complete_to BETWEEN 0 AND inbox_to),
    set_backs bigint NOT NULL DEFAULT 0,
    salt text NOT NULL -- of each webhook-id
        CONSTRAINT receipts_state_salt CHECK (salt ~ '^[0-9a-f]{32}$')
) WITH (fillfactor = 50);

-- gen_random_uuid() is Postgres' own source of strong random bits.
INSERT INTO receipts_state (salt) VALUES (replace(gen_random_uuid()::text, '-', ''));

-- What a worker of the receipts has done so far.
--
-- A row for each: one row for all would make them wait for each other. A dead letter that is
-- replayed counts again: once more in `dead`, or also in `delivered`.
CREATE TABLE receipts_workers (
    name text PRIMARY KEY,
    delivered bigint NOT NULL DEFAULT 0
        CONSTRAINT receipts_workers_delivered CHECK (delivered >= 0),
    dead bigint NOT NULL DEFAULT 0 CONSTRAINT receipts_workers_dead CHECK (dead >= 0),
    -- Rides that the log did not bring: the sweep put them into the inbox.
    swept bigint NOT NULL DEFAULT 0 CONSTRAINT receipts_workers_swept CHECK (swept >= 0),
    -- As in checkpoints; an entry that is read again after a crash counts again.
    entries_not_ours bigint NOT NULL DEFAULT 0
        CONSTRAINT receipts_workers_entries_not_ours CHECK (entries_not_ours >= 0),
    entries_set_aside bigint NOT NULL DEFAULT 0
        CONSTRAINT receipts_workers_entries_set_aside CHECK (entries_set_aside >= 0),
    entries_passed bigint NOT NULL DEFAULT 0
        CONSTRAINT receipts_workers_entries_passed CHECK (entries_passed >= 0)
) WITH (fillfactor = 50);


-- ------------------------------------------------------------------ the reconciliation

-- The total of all rides up to `position`, summed from the rides themselves. `compared` is what
-- the consumers and the warehouse said at the time.
CREATE TABLE reconciliations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    position bigint NOT NULL CONSTRAINT reconciliations_position CHECK (position >= 0),
    total_distance numeric(38,3) NOT NULL
        CONSTRAINT reconciliations_total_distance
        CHECK (total_distance >= 0 AND total_distance <> 'NaN'),
    rides bigint NOT NULL CONSTRAINT reconciliations_rides CHECK (rides >= 0),
    duration_seconds numeric(12,3) NOT NULL
        CONSTRAINT reconciliations_duration_seconds
        CHECK (duration_seconds >= 0 AND duration_seconds <> 'NaN'),
    compared jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Each run of the nightly job, but for those with --check. Its row is committed before it reads
-- anything; the next holder of the lock turns a "running" that was left over into "failed".
--
-- agreed, wrong (nothing that was found waits for a decision) and held (something awaits a person's
-- decision) are the completed runs. `reconciliations` has a row for each sum that was proven.
CREATE TABLE runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    status text NOT NULL DEFAULT 'running' CONSTRAINT runs_status
        CHECK (status IN ('running', 'agreed', 'wrong', 'held', 'failed')),
    reason text, -- why it failed
    position bigint CONSTRAINT runs_position CHECK (position >= 0),
    -- sha256 of each ledger that it gave to the warehouse: noted before the warehouse names it.
    ledgers text[] NOT NULL DEFAULT '{}',
    -- What became of each part: {"totals": "agreed", "warehouse": "held", ...}.
    verdicts jsonb NOT NULL DEFAULT '{}',
    -- What is open, as `analytics/findings.py` describes it.
    findings jsonb NOT NULL DEFAULT '[]',
    -- The readers that were there: [{"kind": ..., "name": ..., "position": ...}].
    readers jsonb NOT NULL DEFAULT '[]',
    rides_reread bigint NOT NULL DEFAULT 0 CONSTRAINT runs_rides_reread CHECK (rides_reread >= 0),
    -- No old ride was compared longer ago than this.
    oldest_look timestamptz,
    -- How far a total, and a consumer of ratings, has ever agreed: {"totals": ..., "ratings": ...}.
    proven jsonb NOT NULL DEFAULT '{}',
    -- Records that were sent and are gone from their tables, as a person has approved.
    records_gone bigint NOT NULL DEFAULT 0,
    CONSTRAINT runs_ended_at CHECK ((status = 'running') = (ended_at IS NULL)),
    CONSTRAINT runs_completed CHECK (position IS NOT NULL OR status IN ('running', 'failed'))
);

-- The last completed run is looked up every second, however many have failed since.
CREATE INDEX runs_last_completed ON runs (id) WHERE status IN ('agreed', 'wrong', 'held');

-- A person has decided that what a run holds is to be taken from Postgres: `analytics/approve.py`.
--
-- The digest is of exactly those findings: a run that finds others does not act on it.
CREATE TABLE approvals (
    run_id bigint PRIMARY KEY REFERENCES runs (id),
    digest text NOT NULL CONSTRAINT approvals_digest CHECK (digest ~ '^[0-9a-f]{64}$'),
    reason text NOT NULL CONSTRAINT approvals_reason CHECK (reason ~ '[^[:space:]]'),
    approved_by text NOT NULL,
    approved_at timestamptz NOT NULL DEFAULT now(),
    used_by bigint REFERENCES runs (id)
);

-- A reconciliation's request to a consumer, which alone acts on it: `consumers/totals/reset.py`.
--
-- Once applied, it says where the consumer stood before and after: the position, and the total.
CREATE TABLE resets (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reconciliation_id bigint NOT NULL REFERENCES reconciliations (id),
    consumer_kind text NOT NULL DEFAULT 'total'
        CONSTRAINT resets_consumer_kind CHECK (consumer_kind = 'total'),
    consumer_name text NOT NULL,
    status text NOT NULL DEFAULT 'pending'
        CONSTRAINT resets_status CHECK (status IN ('pending', 'applied', 'superseded')),
    changed_at timestamptz,
    from_position bigint,
    from_total numeric(38,3),
    to_position bigint,
    to_total numeric(38,3),
    UNIQUE (reconciliation_id, consumer_name),
    FOREIGN KEY (consumer_kind, consumer_name)
        REFERENCES checkpoints (kind, name) ON DELETE CASCADE,
    CONSTRAINT resets_changed_at CHECK ((status = 'pending') = (changed_at IS NULL)),
    CONSTRAINT resets_from_and_to CHECK (
        num_nonnulls(from_position, from_total, to_position, to_total)
        = CASE status WHEN 'applied' THEN 4 ELSE 0 END
    )
);

CREATE INDEX resets_newest ON resets (consumer_name, id);
-- Queried with every batch: nearly always empty, however long the history.
CREATE INDEX resets_pending ON resets (consumer_name) WHERE status = 'pending';

-- A reconciliation's request to the rollup, which alone acts on it: a minute that was wrong.
CREATE TABLE recomputations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reconciliation_id bigint NOT NULL REFERENCES reconciliations (id),
    minute timestamptz NOT NULL,
    -- The first of the minute's rides; where it has none, the last ride up to which it was
    -- compared.
    lowest_ride_id bigint NOT NULL
        CONSTRAINT recomputations_lowest_ride_id CHECK (lowest_ride_id > 0),
    status text NOT NULL DEFAULT 'pending'
        CONSTRAINT recomputations_status CHECK (status IN ('pending', 'done', 'set aside')),
    changed_at timestamptz,
    UNIQUE (reconciliation_id, minute),
    CONSTRAINT recomputations_minute
        CHECK (isfinite(minute) AND minute = date_trunc('minute', minute, 'UTC')),
    CONSTRAINT recomputations_changed_at CHECK ((status = 'pending') = (changed_at IS NULL))
);

CREATE INDEX recomputations_pending ON recomputations (id) WHERE status = 'pending';
CREATE INDEX recomputations_open ON recomputations (minute) WHERE status <> 'done';
