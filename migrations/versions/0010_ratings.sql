-- What a rider says of a ride. Ratings are a kind of record of their own (docs/add-a-kind.md).

-- A row never changes after its transaction commits. No foreign key to rides: it would lock the
-- ride; the one statement that rates a ride checks that it exists.
CREATE TABLE ratings (
    id bigint PRIMARY KEY DEFAULT nextval('log_position'),
    created_at timestamptz NOT NULL DEFAULT now(),
    ride_id bigint NOT NULL UNIQUE,
    stars integer NOT NULL CONSTRAINT ratings_stars CHECK (stars BETWEEN 1 AND 5)
);

-- The ratings that a consumer has counted, and the sum of their stars. Moves with its checkpoint.
CREATE TABLE rating_sums (
    kind text NOT NULL DEFAULT 'ratings' CONSTRAINT rating_sums_kind CHECK (kind = 'ratings'),
    name text PRIMARY KEY,
    ratings bigint NOT NULL DEFAULT 0 CONSTRAINT rating_sums_ratings CHECK (ratings >= 0),
    stars bigint NOT NULL DEFAULT 0 CONSTRAINT rating_sums_stars CHECK (stars >= 0),
    FOREIGN KEY (kind, name) REFERENCES checkpoints (kind, name) ON DELETE CASCADE
) WITH (fillfactor = 50);

SELECT attach(
    'ratings', 'id', 'rating.create',
    $$jsonb_build_object('id', id, 'ride_id', ride_id, 'stars', stars)$$
);
