"""A reconciliation's requests to the rollup: minutes that it found wrong, to be computed anew.

The version before goes on as it did, and leaves them pending.
"""

from alembic import op

revision = "0009"
down_revision = "0008"

UP = [
    """
    CREATE TABLE recomputations (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        reconciliation_id bigint NOT NULL REFERENCES reconciliations (id),
        minute timestamptz NOT NULL,
        lowest_ride_id bigint NOT NULL
            CONSTRAINT recomputations_lowest_ride_id CHECK (lowest_ride_id > 0),
        status text NOT NULL DEFAULT 'pending'
            CONSTRAINT recomputations_status CHECK (status IN ('pending', 'done', 'set aside')),
        changed_at timestamptz,
        UNIQUE (reconciliation_id, minute),
        CONSTRAINT recomputations_minute
            CHECK (isfinite(minute) AND minute = date_trunc('minute', minute, 'UTC')),
        CONSTRAINT recomputations_changed_at
            CHECK ((status = 'pending') = (changed_at IS NULL))
    )
    """,
    "CREATE INDEX recomputations_pending ON recomputations (minute) WHERE status = 'pending'",
]


def upgrade() -> None:
    for statement in UP:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE recomputations")
