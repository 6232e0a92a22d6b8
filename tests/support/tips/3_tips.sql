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

CREATE OR REPLACE VIEW log_records AS
    SELECT id, created_at FROM rides
    UNION ALL
    SELECT id, created_at FROM ratings
    UNION ALL
    SELECT id, created_at FROM tips;
