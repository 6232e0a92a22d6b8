"""The totals that the nightly job computed, and the resets that it asks consumers for."""

from alembic import op

revision = "0002"
down_revision = "0001"

UP = [
    """
    CREATE TABLE reconciliations (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        last_ride_id bigint NOT NULL
            CONSTRAINT reconciliations_last_ride_id CHECK (last_ride_id >= 0),
        total_distance numeric(38,3) NOT NULL
            CONSTRAINT reconciliations_total_distance
            CHECK (total_distance >= 0 AND total_distance <> 'NaN'),
        rides bigint NOT NULL CONSTRAINT reconciliations_rides CHECK (rides >= 0),
        duration_seconds numeric(12,3) NOT NULL
            CONSTRAINT reconciliations_duration_seconds
            CHECK (duration_seconds >= 0 AND duration_seconds <> 'NaN'),
        compared jsonb NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    )
    """,
    """
    CREATE TABLE resets (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        reconciliation_id bigint NOT NULL REFERENCES reconciliations (id),
        consumer_name text NOT NULL REFERENCES checkpoints (name) ON DELETE CASCADE,
        status text NOT NULL DEFAULT 'pending'
            CONSTRAINT resets_status CHECK (status IN ('pending', 'applied', 'superseded')),
        changed_at timestamptz,
        from_ride_id bigint,
        from_total numeric(38,3),
        to_ride_id bigint,
        to_total numeric(38,3),
        UNIQUE (reconciliation_id, consumer_name),
        CONSTRAINT resets_changed_at CHECK ((status = 'pending') = (changed_at IS NULL)),
        CONSTRAINT resets_from_and_to CHECK (
            num_nonnulls(from_ride_id, from_total, to_ride_id, to_total)
            = CASE status WHEN 'applied' THEN 4 ELSE 0 END
        )
    )
    """,
    "CREATE INDEX resets_newest ON resets (consumer_name, id)",
    # Queried with every batch: nearly always empty, however long the history.
    "CREATE INDEX resets_pending ON resets (consumer_name) WHERE status = 'pending'",
]

TABLES = ["resets", "reconciliations"]


def upgrade() -> None:
    for statement in UP:
        op.execute(statement)


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
