-- The tables of the application's consumers and of its reconciliation. Those of the log are in
-- `unified_log/schema/`, those of each kind of record in `0010_rides.sql` and `0010_ratings.sql`.
--
-- Distances are in metres, with exactly three decimals; times are instants. 'NaN' is greater than
-- every number in Postgres: an upper bound keeps it out, a lower one does not. Where rows are
-- updated often, pages keep free space (fillfactor), so that an update stays in its page; what every
-- batch updates has a `version` (`unified_log/schema/1_log.sql`).


-- ------------------------------------------------------------------ the totals

-- What a consumer has added up. Moves with its checkpoint, in one transaction.
CREATE TABLE consumer_states (
    kind text NOT NULL DEFAULT 'total' CONSTRAINT consumer_states_kind CHECK (kind = 'total'),
    name text,
    version bigint DEFAULT 0,
    total_distance numeric(38,3) NOT NULL DEFAULT 0
        CONSTRAINT consumer_states_total_distance
        CHECK (total_distance >= 0 AND total_distance <> 'NaN'),
    -- How many rides these are: what cancels in the metres need not cancel here.
    rides bigint NOT NULL DEFAULT 0 CONSTRAINT consumer_states_rides CHECK (rides >= 0),
    -- What it has healed, in metres.
    distance_healed numeric(38,3) NOT NULL DEFAULT 0
        CONSTRAINT consumer_states_distance_healed
        CHECK (distance_healed >= 0 AND distance_healed <> 'NaN'),
    PRIMARY KEY (name, version),
    FOREIGN KEY (kind, name) REFERENCES readers (kind, name) ON DELETE CASCADE
);

CREATE TRIGGER one_row BEFORE INSERT ON consumer_states
    FOR EACH ROW EXECUTE FUNCTION refuse_second('name');


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
    version bigint PRIMARY KEY DEFAULT 0,
    complete_to bigint NOT NULL DEFAULT cell_start()
        CONSTRAINT rollup_state_complete_to CHECK (complete_to >= 0),
    generation text NOT NULL DEFAULT ''
        CONSTRAINT rollup_state_generation CHECK (generation ~ '^([0-9a-f]{16})?$'),
    -- The generation whose Ick may still be in Redis: a repair begins a generation without one.
    ick text NOT NULL DEFAULT '' CONSTRAINT rollup_state_ick CHECK (ick ~ '^([0-9a-f]{16})?$')
);

CREATE TRIGGER one_row BEFORE INSERT ON rollup_state
    FOR EACH ROW EXECUTE FUNCTION refuse_second();

INSERT INTO rollup_state DEFAULT VALUES;

-- Every minute from a ride's on is rolled up again. The rollup marks everything past `complete_to`
-- under its next generation, and no earlier lead can undo that.
CREATE FUNCTION set_back_rollup(ride_id bigint) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    UPDATE rollup_state SET complete_to = least(complete_to, ride_id - 1),
        generation = left(replace(gen_random_uuid()::text, '-', ''), 16);
END;

INSERT INTO set_back_hooks VALUES ('set_back_rollup(bigint)');

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
    version bigint PRIMARY KEY DEFAULT 0,
    inbox_to bigint NOT NULL DEFAULT cell_start(),
    complete_to bigint NOT NULL DEFAULT cell_start()
        CONSTRAINT receipts_state_complete_to CHECK (complete_to BETWEEN 0 AND inbox_to),
    set_backs bigint NOT NULL DEFAULT 0,
    salt text NOT NULL -- of each webhook-id
        CONSTRAINT receipts_state_salt CHECK (salt ~ '^[0-9a-f]{32}$')
);

CREATE TRIGGER one_row BEFORE INSERT ON receipts_state
    FOR EACH ROW EXECUTE FUNCTION refuse_second();

-- gen_random_uuid() is Postgres' own source of strong random bits.
INSERT INTO receipts_state (salt) VALUES (replace(gen_random_uuid()::text, '-', ''));

-- The sweep looks again at the receipts from a ride on, and puts rides without a row into the inbox.
-- It is counted, so that a sweep that is under way can't undo it.
CREATE FUNCTION set_back_receipts(ride_id bigint) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    UPDATE receipts_state SET inbox_to = least(inbox_to, ride_id - 1),
        complete_to = least(complete_to, ride_id - 1), set_backs = set_backs + 1;
END;

INSERT INTO set_back_hooks VALUES ('set_back_receipts(bigint)');

-- What a worker of the receipts has done so far.
--
-- A row for each: one row for all would make them wait for each other. A dead letter that is
-- replayed counts again: once more in `dead`, or also in `delivered`.
CREATE TABLE receipts_workers (
    name text,
    version bigint DEFAULT 0,
    delivered bigint NOT NULL DEFAULT 0
        CONSTRAINT receipts_workers_delivered CHECK (delivered >= 0),
    dead bigint NOT NULL DEFAULT 0 CONSTRAINT receipts_workers_dead CHECK (dead >= 0),
    -- Rides that the log did not bring: the sweep put them into the inbox.
    swept bigint NOT NULL DEFAULT 0 CONSTRAINT receipts_workers_swept CHECK (swept >= 0),
    -- As in checkpoints; an entry that is read again after a crash counts again.
    entries_ignored bigint NOT NULL DEFAULT 0
        CONSTRAINT receipts_workers_entries_ignored CHECK (entries_ignored >= 0),
    entries_malformed bigint NOT NULL DEFAULT 0
        CONSTRAINT receipts_workers_entries_malformed CHECK (entries_malformed >= 0),
    entries_passed bigint NOT NULL DEFAULT 0
        CONSTRAINT receipts_workers_entries_passed CHECK (entries_passed >= 0),
    PRIMARY KEY (name, version)
);

-- What all of them have done. Name by name, from the last one down: there, too, the index finds the
-- newest version of each first.
CREATE VIEW receipts_done AS
    WITH RECURSIVE workers (name) AS (
        SELECT max(name) FROM receipts_workers
        UNION ALL
        SELECT (SELECT max(name) FROM receipts_workers WHERE name < workers.name)
        FROM workers WHERE name IS NOT NULL
    )
    SELECT coalesce(sum(delivered), 0) AS delivered, coalesce(sum(dead), 0) AS dead,
           coalesce(sum(swept), 0) AS swept,
           coalesce(sum(entries_ignored), 0) AS entries_ignored,
           coalesce(sum(entries_malformed), 0) AS entries_malformed,
           coalesce(sum(entries_passed), 0) AS entries_passed
    FROM workers CROSS JOIN LATERAL (
        SELECT * FROM receipts_workers WHERE name = workers.name ORDER BY version DESC LIMIT 1
    ) newest;

-- What became of a receipt, in one word. A ride without a row is queued: nobody has begun an attempt.
-- One whose lease has run out waits: its worker was lost. So does a dead one that is to be sent again.
CREATE FUNCTION receipt_state(
    outcome text, replay_at timestamptz, lease uuid, due_at timestamptz, attempts integer
) RETURNS text LANGUAGE sql STABLE
RETURN CASE
    WHEN outcome = 'delivered' THEN 'delivered'
    WHEN outcome = 'dead' AND replay_at IS NULL THEN 'dead'
    WHEN lease IS NOT NULL AND due_at > now() THEN 'in flight'
    WHEN attempts > 0 THEN 'waiting'
    ELSE 'queued'
END;

-- By this id a receiver recognizes a repetition. A ride keeps it for ever, in every copy of this
-- database. A ride that gets the same number after a restore has another one, because its time
-- differs. The salt keeps it different from other databases' ids, and keeps anyone from working it
-- out from the ride.
CREATE FUNCTION webhook_id(
    salt text, ride_id bigint, distance numeric, created_at timestamptz
) RETURNS text LANGUAGE sql STABLE
RETURN 'msg_' || left(encode(sha256(concat_ws(
    '/', salt, ride_id, distance, extract(epoch FROM created_at)
)::bytea), 'hex'), 32);


-- ------------------------------------------------------------------ where the readers stand

-- Two functions, for whoever shows the readers: each costs the same however large a lag is, since
-- it counts up to `most`. They have no rights of their own, and Postgres plans them as a part of the
-- statement that calls them: EXPLAIN shows what they do. Their texts are looked up as they are
-- called, so that neither holds up somebody who replaces a table or the view `log_records`.


-- The lag of the receipts, from their queue: the rides without an outcome. Those are open in the
-- queue, or have yet to come into the inbox, of which there are none up to `inbox_to`. EXCEPT reads
-- each table once, where a join might look up one receipt after the other.
--
-- The open ones are those that are due, those that are due later, and those that are quarantined, up
-- to `most` each. An index finds each. Replayed dead letters are among them. None fell due before the
-- first ride without an outcome was taken, or the first dead letter was replayed: so the look starts
-- there, as that of TAKE does (`consumers/receipts/statements.py`). While a snapshot is held
-- elsewhere, the index keeps an entry of every row that was ever due, and a look from its start would
-- read them all.
--
-- If more are open than one look counts, the oldest is taken to be the first after `complete_to`. If
-- more rides than that are above `inbox_to`, only the newest are looked at: older ones which a loss
-- of the log kept from the inbox are not counted until the sweep has found them.
CREATE FUNCTION receipts_lag(most bigint) RETURNS TABLE (
    "position" bigint, pending bigint, queued bigint, in_flight bigint, waiting bigint,
    oldest_at timestamptz -- when the oldest ride without an outcome was taken
) LANGUAGE sql STABLE AS $$
WITH state AS MATERIALIZED (
    SELECT * FROM receipts_state ORDER BY version DESC LIMIT 1
), newest AS MATERIALIZED (
    SELECT id FROM rides WHERE id > (SELECT inbox_to FROM state)
    ORDER BY id DESC LIMIT most
), arriving AS (
    SELECT count(*) AS rides, min(id) AS first FROM (
        SELECT id FROM newest
        EXCEPT ALL
        SELECT ride_id FROM receipts WHERE ride_id >= (SELECT min(id) FROM newest)
    ) rides
), open AS (
    (SELECT * FROM receipts
     WHERE (outcome IS NULL OR replay_at IS NOT NULL) AND unfinished < 2
       AND due_at >= least(
           (SELECT created_at FROM rides WHERE id > (
               SELECT complete_to FROM receipts_state ORDER BY version DESC LIMIT 1
            ) ORDER BY id LIMIT 1),
           (SELECT min(replay_at) FROM receipts WHERE replay_at IS NOT NULL), now()
       ) - interval '1 minute' AND due_at <= now()
     ORDER BY due_at LIMIT most)
    UNION ALL
    (SELECT * FROM receipts
     WHERE (outcome IS NULL OR replay_at IS NOT NULL) AND unfinished < 2 AND due_at > now()
     ORDER BY due_at LIMIT most)
    UNION ALL
    (SELECT * FROM receipts
     WHERE (outcome IS NULL OR replay_at IS NOT NULL) AND unfinished >= 2
     ORDER BY unfinished, due_at LIMIT most)
), queue AS (
    SELECT count(*) FILTER (WHERE outcome IS NULL) AS rides,
           min(ride_id) FILTER (WHERE outcome IS NULL) AS first,
           count(*) FILTER (WHERE state = 'queued') AS queued,
           count(*) FILTER (WHERE state = 'in flight') AS in_flight,
           count(*) FILTER (WHERE state = 'waiting') AS waiting
    FROM (
        SELECT ride_id, outcome,
               receipt_state(outcome, replay_at, lease, due_at, attempts) AS state
        FROM open
    ) receipts
), lag AS (
    SELECT least(most, arriving.rides + queue.rides) AS pending,
           arriving.rides + queued AS queued, in_flight, waiting,
           CASE WHEN arriving.rides + queue.rides >= most THEN state.complete_to
                ELSE least(arriving.first, queue.first) - 1 END AS complete_to
    FROM state CROSS JOIN arriving CROSS JOIN queue
)
SELECT (SELECT least(complete_to, last_sent_id) FROM streamer_state ORDER BY version DESC LIMIT 1),
       pending, queued, in_flight, waiting,
       (SELECT created_at FROM rides WHERE id > complete_to ORDER BY id LIMIT 1)
FROM lag
$$;

-- The readers that have a checkpoint, where each stands, and its lag in records of whatever kind,
-- since a reader has to pass those that it does not handle. Consumer groups are only in Redis, so
-- none is here.
--
-- A reader lacks all records after `counted`. The rollup has counted a ride when its minute is
-- computed, not when its checkpoint has passed it. The records are counted once for all readers, in
-- *steps*: each is from one `counted` to the next higher one. The steps are then added up once, from
-- the last one down.
--
-- `recounts`: it makes its state anew, or was asked to (`analytics/freeze.py` asks the same). Once it
-- has begun, the state fits the position again at every moment. Readers without a state of their own
-- are never asked. `seconds_behind` is the age of the first record that it lacks.
CREATE FUNCTION standings(most bigint) RETURNS TABLE (
    kind text, name text, "position" bigint, recounts boolean, held_out bigint, dropped bigint,
    records_behind bigint, seconds_behind numeric
) LANGUAGE sql STABLE AS $$
WITH readers AS MATERIALIZED (
    SELECT current_checkpoints.*, counted, dense_rank() OVER (ORDER BY counted) AS step
    FROM current_checkpoints CROSS JOIN LATERAL (
        SELECT CASE kind WHEN 'rollup' THEN (
                   SELECT complete_to FROM rollup_state ORDER BY version DESC LIMIT 1
               ) ELSE "position" END AS counted
    ) what
),
steps AS (SELECT array_agg(DISTINCT counted ORDER BY counted) AS bounds FROM readers),
counts AS MATERIALIZED (
    SELECT width_bucket(id - 1, bounds) AS step, count(*) AS records
    FROM steps CROSS JOIN LATERAL (
        SELECT id FROM log_records WHERE id > bounds[1] ORDER BY id DESC LIMIT most
    ) newest GROUP BY 1
),
later AS MATERIALIZED (
    SELECT array_agg(records ORDER BY step) AS records FROM (
        SELECT step, sum(sum(records)) OVER (ORDER BY step DESC)::bigint AS records
        FROM (SELECT step, records FROM counts UNION ALL SELECT step, 0 FROM readers) each
        GROUP BY step
    ) sums
)
SELECT kind, name, "position",
       recount IS NOT NULL AND (recount OR "position" < furthest),
       (SELECT count(*) FROM (
            SELECT FROM held_out_records held
            WHERE (held.kind, held.name) = (readers.kind, readers.name) AND dropped_at IS NULL
            LIMIT most) undecided),
       (SELECT count(*) FROM (
            SELECT FROM held_out_records held
            WHERE (held.kind, held.name) = (readers.kind, readers.name)
              AND dropped_at IS NOT NULL
            LIMIT most) dropped),
       least(most, (SELECT records FROM later)[step]),
       CASE WHEN created_at IS NULL THEN 0
            WHEN isfinite(created_at)
            THEN greatest(0, round(extract(epoch FROM now() - created_at), 3))
       END
FROM readers
LEFT JOIN LATERAL (
    SELECT created_at FROM log_records record WHERE record.id > counted
    ORDER BY record.id LIMIT 1
) oldest ON true
$$;

GRANT EXECUTE ON FUNCTION webhook_id, receipt_state, receipts_lag, standings TO PUBLIC;


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
        REFERENCES readers (kind, name) ON DELETE CASCADE,
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
