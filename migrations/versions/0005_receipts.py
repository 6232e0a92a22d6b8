"""Receipts: what came of each ride's, and up to which ride every one has come to an end.

They begin with the rides after today's last_sent: whoever took the rides before has no receiver
that waits for a receipt.
"""

from alembic import op

revision = "0005"
down_revision = "0004"

UP = [
    # A row begins with a ride's first attempt. Nothing that changes while receipts are delivered
    # is in an index, so the rows are updated in place (HOT): dead_at and replay_at stay NULL.
    """
    CREATE TABLE receipts (
        ride_id bigint PRIMARY KEY,
        outcome text CONSTRAINT receipts_outcome CHECK (outcome IN ('delivered', 'dead')),
        attempts integer NOT NULL CONSTRAINT receipts_attempts CHECK (attempts >= 0),
        unfinished integer NOT NULL DEFAULT 0
            CONSTRAINT receipts_unfinished CHECK (unfinished >= 0),
        forgiven integer NOT NULL DEFAULT 0 CONSTRAINT receipts_forgiven CHECK (forgiven >= 0),
        reason text,
        first_at timestamptz NOT NULL DEFAULT now(),
        due_at timestamptz NOT NULL,
        decided_at timestamptz,
        dead_at timestamptz,
        replay_at timestamptz,
        dropped_at timestamptz,
        CONSTRAINT receipts_decided_at CHECK ((outcome IS NULL) = (decided_at IS NULL)),
        CONSTRAINT receipts_dead CHECK (
            (outcome = 'dead') IS TRUE = (dead_at IS NOT NULL)
            AND (dead_at IS NOT NULL OR num_nonnulls(replay_at, dropped_at) = 0)
            AND num_nonnulls(replay_at, dropped_at) < 2
        )
    ) WITH (fillfactor = 70)
    """,
    "CREATE INDEX receipts_dead ON receipts (ride_id) WHERE dead_at IS NOT NULL",
    "CREATE INDEX receipts_replay ON receipts (ride_id) WHERE replay_at IS NOT NULL",
    """
    CREATE TABLE receipts_state (
        only_row boolean PRIMARY KEY DEFAULT true
            CONSTRAINT receipts_state_only_row CHECK (only_row),
        since bigint NOT NULL,
        complete_to bigint NOT NULL,
        mends bigint NOT NULL DEFAULT 0,
        salt text NOT NULL CONSTRAINT receipts_state_salt CHECK (salt ~ '^[0-9a-f]{32}$'),
        CONSTRAINT receipts_state_complete_to CHECK (0 <= since AND since <= complete_to)
    ) WITH (fillfactor = 50)
    """,
    # gen_random_uuid() is Postgres' own source of strong random bits.
    """
    INSERT INTO receipts_state (since, complete_to, salt)
    SELECT last_sent, last_sent, replace(gen_random_uuid()::text, '-', '')
    FROM (SELECT coalesce((SELECT last_sent_id FROM streamer_state), 0) AS last_sent) today
    """,
]

# Entries that were no records, of readers that the schema before does not know.
DOWN = [
    "DELETE FROM dead_letters WHERE consumer_kind = 'receipts'",
    "DROP TABLE receipts_state",
    "DROP TABLE receipts",
]


def upgrade() -> None:
    for statement in UP:
        op.execute(statement)


def downgrade() -> None:
    for statement in DOWN:
        op.execute(statement)
