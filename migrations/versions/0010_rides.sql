-- What goes into the log, and what a client was promised. Distances are in metres, with exactly three
-- decimals; times are instants.

-- The source of truth. A row never changes after its transaction commits.
--
-- Every kind of record draws its id, its position in the log, from the one sequence `log_position`.
CREATE TABLE rides (
    id bigint PRIMARY KEY DEFAULT nextval('log_position'),
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

-- What a record of a ride says: the ride's public JSON. The API stages it, in the same statement.
SELECT attach('rides', 'id', 'ride.create', $$jsonb_build_object('id', id, 'distance', distance)$$);
