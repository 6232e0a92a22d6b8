"""Kinds of checkpoints; the rollup: rides per minute, and how far it is complete.

What never had a total is a program outside of this project: docs/writing-a-consumer.md says what it
has to change. Its statements without a kind meet its own row, and never a total's.

The index on rides is made in the migration's transaction, so rides wait while Postgres reads the
table once: about a second for ten million.
"""

from alembic import op

revision = "0004"
down_revision = "0003"

# A total named "rollup" is not the rollup's checkpoint. States and resets belong to totals alone.
KINDS = [
    """
    ALTER TABLE checkpoints
        ADD kind text NOT NULL DEFAULT 'total'
            CONSTRAINT checkpoints_kind CHECK (length(kind) BETWEEN 1 AND 64),
        ADD CONSTRAINT checkpoints_kind_name_key UNIQUE (kind, name)
    """,
    """
    ALTER TABLE consumer_states
        ADD kind text NOT NULL DEFAULT 'total'
            CONSTRAINT consumer_states_kind CHECK (kind = 'total'),
        DROP CONSTRAINT consumer_states_name_fkey,
        ADD CONSTRAINT consumer_states_kind_name_fkey FOREIGN KEY (kind, name)
            REFERENCES checkpoints (kind, name) ON DELETE CASCADE
    """,
    """
    ALTER TABLE resets
        ADD consumer_kind text NOT NULL DEFAULT 'total'
            CONSTRAINT resets_consumer_kind CHECK (consumer_kind = 'total'),
        DROP CONSTRAINT resets_consumer_name_fkey,
        ADD CONSTRAINT resets_consumer_kind_consumer_name_fkey
            FOREIGN KEY (consumer_kind, consumer_name)
            REFERENCES checkpoints (kind, name) ON DELETE CASCADE
    """,
    """
    UPDATE checkpoints SET kind = 'outside'
    WHERE name NOT IN (SELECT name FROM consumer_states UNION SELECT consumer_name FROM resets)
    """,
    """
    ALTER TABLE checkpoints
        ALTER kind SET DEFAULT 'outside',
        DROP CONSTRAINT checkpoints_name_key
    """,
    """
    ALTER TABLE dead_letters
        ADD consumer_kind text NOT NULL DEFAULT 'total',
        DROP CONSTRAINT dead_letters_consumer_name_redis_id_key,
        ADD CONSTRAINT dead_letters_consumer_kind_consumer_name_redis_id_key
            UNIQUE (consumer_kind, consumer_name, redis_id)
    """,
]

ROLLUP = [
    # Minutes are in UTC: no zone's offset is a fraction of a minute any more, but some were.
    """
    CREATE TABLE ride_minutes (
        minute timestamptz PRIMARY KEY
            CONSTRAINT ride_minutes_minute CHECK (
                isfinite(minute) AND minute = date_trunc('minute', minute, 'UTC')
            ),
        rides bigint NOT NULL CONSTRAINT ride_minutes_rides CHECK (rides >= 0),
        distance numeric(38,3) NOT NULL
            CONSTRAINT ride_minutes_distance CHECK (distance >= 0 AND distance <> 'NaN'),
        upto bigint NOT NULL CONSTRAINT ride_minutes_upto CHECK (upto >= 0)
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE rollup_state (
        only_row boolean PRIMARY KEY DEFAULT true
            CONSTRAINT rollup_state_only_row CHECK (only_row),
        complete_to bigint NOT NULL DEFAULT 0
            CONSTRAINT rollup_state_complete_to CHECK (complete_to >= 0),
        generation text NOT NULL DEFAULT ''
            CONSTRAINT rollup_state_generation CHECK (generation ~ '^([0-9a-f]{16})?$'),
        ick text NOT NULL DEFAULT ''
            CONSTRAINT rollup_state_ick CHECK (ick ~ '^([0-9a-f]{16})?$')
    ) WITH (fillfactor = 50)
    """,
    "INSERT INTO rollup_state DEFAULT VALUES",
    """
    CREATE TABLE set_aside_minutes (
        minute timestamptz PRIMARY KEY,
        lowest_ride_id bigint NOT NULL,
        reason text NOT NULL,
        attempts integer NOT NULL,
        set_aside_at timestamptz NOT NULL DEFAULT now(),
        retry boolean NOT NULL DEFAULT false
    )
    """,
    # Rides are appended in the order of their time, so a few bytes for each 32 pages are enough to
    # find a minute's; and an INSERT has next to nothing to do.
    """
    CREATE INDEX rides_created_at ON rides USING brin (created_at)
        WITH (pages_per_range = 32, autosummarize = on)
    """,
]

DOWN = [
    "DROP INDEX rides_created_at",
    "DROP TABLE set_aside_minutes",
    "DROP TABLE rollup_state",
    "DROP TABLE ride_minutes",
    "DELETE FROM dead_letters WHERE consumer_kind <> 'total'",
    "DELETE FROM checkpoints WHERE kind = 'rollup'",
    # Names are unique again: of several readers with one name, a total stays, else the oldest.
    """
    DELETE FROM checkpoints USING checkpoints other
    WHERE checkpoints.name = other.name AND checkpoints.kind <> 'total'
      AND (other.kind = 'total' OR other.id < checkpoints.id)
    """,
    """
    ALTER TABLE dead_letters
        DROP CONSTRAINT dead_letters_consumer_kind_consumer_name_redis_id_key,
        ADD CONSTRAINT dead_letters_consumer_name_redis_id_key UNIQUE (consumer_name, redis_id),
        DROP COLUMN consumer_kind
    """,
    "ALTER TABLE checkpoints ADD CONSTRAINT checkpoints_name_key UNIQUE (name)",
    """
    ALTER TABLE resets
        DROP CONSTRAINT resets_consumer_kind_consumer_name_fkey,
        ADD CONSTRAINT resets_consumer_name_fkey FOREIGN KEY (consumer_name)
            REFERENCES checkpoints (name) ON DELETE CASCADE,
        DROP COLUMN consumer_kind
    """,
    """
    ALTER TABLE consumer_states
        DROP CONSTRAINT consumer_states_kind_name_fkey,
        ADD CONSTRAINT consumer_states_name_fkey FOREIGN KEY (name)
            REFERENCES checkpoints (name) ON DELETE CASCADE,
        DROP COLUMN kind
    """,
    """
    ALTER TABLE checkpoints
        DROP CONSTRAINT checkpoints_kind_name_key,
        DROP COLUMN kind
    """,
]


def upgrade() -> None:
    for statement in KINDS + ROLLUP:
        op.execute(statement)


def downgrade() -> None:
    for statement in DOWN:
        op.execute(statement)
