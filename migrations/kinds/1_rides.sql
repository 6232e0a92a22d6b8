-- The tables of the application: what goes into the log, and what a client was promised. Distances are
-- in metres, with exactly three decimals; times are instants.

-- The source of truth. A row never changes after its transaction commits.
--
-- Every kind of record draws its id from the one sequence, `log_position`: the streamer's barrier
-- watches who does. ALWAYS keeps anyone from supplying a number of their own. CACHE 1: numbers that
-- a session caches outlive the transaction that drew them, and would break the barrier.
CREATE TABLE rides (
    id bigint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME log_position CACHE 1) PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    distance numeric(12,3) NOT NULL
        CONSTRAINT rides_distance_in_range CHECK (distance > 0 AND distance <= 999999999.999)
);

-- Finds the rides of a minute. Rides are appended in the order of their time, so a few bytes for
-- each 32 pages are enough; and an INSERT has next to nothing to do.
CREATE INDEX rides_created_at ON rides USING brin (created_at)
    WITH (pages_per_range = 32, autosummarize = on);

-- A client's key: equal keys mean one ride. Committed with that ride.
CREATE TABLE idempotency_keys (
    key varchar(255) PRIMARY KEY,
    distance numeric(12,3) NOT NULL
        CONSTRAINT idempotency_keys_distance_in_range
        CHECK (distance > 0 AND distance <= 999999999.999),
    ride_id bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);

-- Which positions have a record, staged or sent, of whatever kind. The streamer knows the tables
-- of the application by this view alone; every lag but the receipts' is counted in its rows.
CREATE VIEW log_records AS
    SELECT id, created_at FROM rides;
