CREATE TABLE tips (
    id bigint PRIMARY KEY DEFAULT nextval('log_position'),
    created_at timestamptz NOT NULL DEFAULT now(),
    ride_id bigint NOT NULL,
    cents bigint NOT NULL CHECK (cents > 0)
);

CREATE TABLE tip_sums (
    kind text NOT NULL DEFAULT 'tips' CHECK (kind = 'tips'),
    name text PRIMARY KEY,
    cents bigint NOT NULL DEFAULT 0,
    FOREIGN KEY (kind, name) REFERENCES checkpoints (kind, name) ON DELETE CASCADE
);

SELECT attach(
    'tips', 'id', 'tip.create', $$jsonb_build_object('id', id, 'ride_id', ride_id, 'cents', cents)$$
);
