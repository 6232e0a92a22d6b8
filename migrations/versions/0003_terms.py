"""Terms: which entries of the log are this database's own."""

from alembic import op

revision = "0003"
down_revision = "0002"

UP = [
    """
    CREATE TABLE terms (
        after bigint PRIMARY KEY CONSTRAINT terms_after CHECK (after >= 0),
        term text NOT NULL UNIQUE CONSTRAINT terms_term CHECK (term ~ '^[0-9a-f]{16}$'),
        void text[] NOT NULL DEFAULT '{}',
        began_at timestamptz NOT NULL DEFAULT now()
    )
    """,
    """
    ALTER TABLE checkpoints
        ADD unbelieved_entries bigint NOT NULL DEFAULT 0
            CONSTRAINT checkpoints_unbelieved_entries CHECK (unbelieved_entries >= 0),
        DROP CONSTRAINT checkpoints_last_redis_id
    """,
    # Redis has no such ids: a consumer that stood at one reads again from the start, and skips.
    """
    UPDATE checkpoints SET last_redis_id = '0-0'
    WHERE split_part(last_redis_id, '-', 1)::numeric > 18446744073709551615
       OR split_part(last_redis_id, '-', 2)::numeric > 18446744073709551615
    """,
    """
    ALTER TABLE checkpoints ADD CONSTRAINT checkpoints_last_redis_id CHECK (
        CASE WHEN last_redis_id ~ '^[0-9]+-[0-9]+$'
        THEN split_part(last_redis_id, '-', 1)::numeric <= 18446744073709551615
         AND split_part(last_redis_id, '-', 2)::numeric <= 18446744073709551615
        ELSE false END
    )
    """,
    # A standby of the previous version must not lead without a term: its statements now fail.
    "ALTER TABLE streamer_state RENAME COLUMN last_sent TO last_sent_id",
]

DOWN = [
    """
    ALTER TABLE checkpoints
        DROP COLUMN unbelieved_entries,
        DROP CONSTRAINT checkpoints_last_redis_id,
        ADD CONSTRAINT checkpoints_last_redis_id CHECK (last_redis_id ~ '^[0-9]+-[0-9]+$')
    """,
    "DROP TABLE terms",
    "ALTER TABLE streamer_state RENAME COLUMN last_sent_id TO last_sent",
]


def upgrade() -> None:
    for statement in UP:
        op.execute(statement)


def downgrade() -> None:
    for statement in DOWN:
        op.execute(statement)
