"""Rides, their outbox, the streamer's and the consumers' checkpoints, idempotency keys."""

from alembic import op

revision = "0001"
down_revision = None

UP = [
    # One sequence for rides and staged records. CACHE 1: numbers that a session caches outlive the
    # transaction that drew them, and would break the streamer's barrier.
    """
    CREATE TABLE rides (
        id bigint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME log_position CACHE 1) PRIMARY KEY,
        created_at timestamptz NOT NULL DEFAULT now(),
        distance numeric(12,3) NOT NULL
            CONSTRAINT rides_distance_in_range
            CHECK (distance > 0 AND distance <= 999999999.999)
    )
    """,
    # No foreign key to rides: the one statement that stages is the one that inserts the ride.
    # Every row is soon deleted, so a number of rows triggers vacuum, not a share of the table.
    """
    CREATE TABLE staged_log_records (
        id bigint PRIMARY KEY,
        action text NOT NULL,
        object text NOT NULL,
        data jsonb NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)
    """,
    """
    CREATE TABLE streamer_state (
        only_row boolean PRIMARY KEY DEFAULT true
            CONSTRAINT streamer_state_only_row CHECK (only_row),
        last_sent bigint NOT NULL DEFAULT 0
            CONSTRAINT streamer_state_last_sent CHECK (last_sent >= 0)
    ) WITH (fillfactor = 50)
    """,
    "INSERT INTO streamer_state DEFAULT VALUES",
    """
    CREATE TABLE checkpoints (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL UNIQUE
            CONSTRAINT checkpoints_name CHECK (length(name) BETWEEN 1 AND 64),
        last_redis_id text NOT NULL DEFAULT '0-0'
            CONSTRAINT checkpoints_last_redis_id CHECK (last_redis_id ~ '^[0-9]+-[0-9]+$'),
        last_ride_id bigint NOT NULL DEFAULT 0
            CONSTRAINT checkpoints_last_ride_id CHECK (last_ride_id >= 0)
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE consumer_states (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL UNIQUE REFERENCES checkpoints (name) ON DELETE CASCADE,
        total_distance numeric(38,3) NOT NULL DEFAULT 0
            CONSTRAINT consumer_states_total_distance
            CHECK (total_distance >= 0 AND total_distance <> 'NaN')
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE dead_letters (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        consumer_name text NOT NULL,
        redis_id text NOT NULL,
        fields bytea[] NOT NULL,
        reason text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (consumer_name, redis_id)
    )
    """,
    """
    CREATE TABLE idempotency_keys (
        key varchar(255) PRIMARY KEY,
        distance numeric(12,3) NOT NULL
            CONSTRAINT idempotency_keys_distance_in_range
            CHECK (distance > 0 AND distance <= 999999999.999),
        ride_id bigint,
        created_at timestamptz NOT NULL DEFAULT now()
    ) WITH (fillfactor = 70)
    """,
]

TABLES = [
    "idempotency_keys",
    "dead_letters",
    "consumer_states",
    "checkpoints",
    "streamer_state",
    "staged_log_records",
    "rides",
]


def upgrade() -> None:
    for statement in UP:
        op.execute(statement)


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
