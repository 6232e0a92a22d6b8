"""A reconciliation's requests to the rollup: minutes that it found wrong, to be computed anew.

A rollup of the version before goes on as it did, and leaves them pending. Who could write a
reconciliation's result may now also read what it proves, and ask for what is wrong to be put right.
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
    "CREATE INDEX recomputations_pending ON recomputations (id) WHERE status = 'pending'",
    "CREATE INDEX recomputations_open ON recomputations (minute) WHERE status <> 'done'",
    """
    DO $$ DECLARE who text; BEGIN
        FOR who IN
            SELECT DISTINCT CASE grantee WHEN 'PUBLIC' THEN grantee ELSE quote_ident(grantee) END
            FROM information_schema.table_privileges
            WHERE table_schema = current_schema AND table_name = 'reconciliations'
              AND privilege_type = 'INSERT' AND grantee <> grantor
        LOOP
            EXECUTE format('GRANT SELECT ON ride_minutes, rollup_state, set_aside_minutes,'
                ' recomputations, receipts, receipts_state, staged_log_records TO %s', who);
            EXECUTE format('GRANT INSERT ON recomputations TO %s', who);
            EXECUTE format('GRANT UPDATE (complete_to, mends) ON receipts_state TO %s', who);
        END LOOP;
    END $$
    """,
]


def upgrade() -> None:
    for statement in UP:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE recomputations")
