"""The tables that the API writes to, and those that it asks in SQLAlchemy's words.

What they mean stands in the SQL that makes them, in `migrations/versions/`. A test compares these
with a migrated database.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    Uuid,
    text,
)

metadata = MetaData()

POSITION = text("nextval('log_position'::regclass)")
FIRST = text("cell_start()")
NOW = text("now()")

Moment = DateTime(timezone=True)

# Ids don't appear in order: a lower one may commit later (`unified_log/streamer/barrier.py`).
rides = Table(
    "rides",
    metadata,
    Column("id", BigInteger, primary_key=True, server_default=POSITION),
    Column("created_at", Moment, nullable=False, server_default=NOW),
    Column("distance", Numeric(12, 3), nullable=False),
    CheckConstraint("distance > 0 AND distance <= 999999999.999", "rides_distance_in_range"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("key", String(255), primary_key=True),
    Column("distance", Numeric(12, 3), nullable=False),
    Column("ride_id", BigInteger, nullable=False),
    Column("created_at", Moment, nullable=False, server_default=NOW),
    CheckConstraint(
        "distance > 0 AND distance <= 999999999.999", "idempotency_keys_distance_in_range"
    ),
)

ratings = Table(
    "ratings",
    metadata,
    Column("id", BigInteger, primary_key=True, server_default=POSITION),
    Column("created_at", Moment, nullable=False, server_default=NOW),
    Column("ride_id", BigInteger, nullable=False, unique=True),
    Column("stars", Integer, nullable=False),
    CheckConstraint("stars BETWEEN 1 AND 5", "ratings_stars"),
)

receipts = Table(
    "receipts",
    metadata,
    Column("ride_id", BigInteger, primary_key=True, autoincrement=False),
    Column("outcome", Text),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("excused", Integer, nullable=False, server_default=text("0")),
    Column("unfinished", Integer, nullable=False, server_default=text("0")),
    Column("lease", Uuid),
    Column("queued_at", Moment, nullable=False, server_default=NOW),
    Column("first_at", Moment),
    Column("due_at", Moment, nullable=False, server_default=NOW),
    Column("reason", Text),
    Column("decided_at", Moment),
    Column("replay_at", Moment),
    Column("dropped_at", Moment),
    Column("traceparent", Text),
    Column("tracestate", Text),
    CheckConstraint("outcome IN ('delivered', 'dead')", "receipts_outcome"),
    CheckConstraint("attempts >= 0", "receipts_attempts"),
    CheckConstraint("excused BETWEEN 0 AND attempts", "receipts_excused"),
    CheckConstraint("unfinished BETWEEN 0 AND attempts", "receipts_unfinished"),
    CheckConstraint("(outcome IS NULL) = (decided_at IS NULL)", "receipts_decided_at"),
    CheckConstraint(
        "num_nonnulls(replay_at, dropped_at) = 0"
        " OR (outcome = 'dead') IS TRUE AND num_nonnulls(replay_at, dropped_at) < 2",
        "receipts_dead",
    ),
)

receipts_state = Table(
    "receipts_state",
    metadata,
    Column("only_row", Boolean, primary_key=True, server_default=text("true")),
    Column("inbox_to", BigInteger, nullable=False, server_default=FIRST),
    Column("complete_to", BigInteger, nullable=False, server_default=FIRST),
    Column("set_backs", BigInteger, nullable=False, server_default=text("0")),
    Column("salt", Text, nullable=False),
    CheckConstraint("only_row", "receipts_state_only_row"),
    CheckConstraint("complete_to BETWEEN 0 AND inbox_to", "receipts_state_complete_to"),
    CheckConstraint("salt ~ '^[0-9a-f]{32}$'", "receipts_state_salt"),
)

ride_minutes = Table(
    "ride_minutes",
    metadata,
    Column("minute", Moment, primary_key=True),
    Column("rides", BigInteger, nullable=False),
    Column("distance", Numeric(38, 3), nullable=False),
    Column("upto", BigInteger, nullable=False),
    CheckConstraint(
        "isfinite(minute) AND minute = date_trunc('minute', minute, 'UTC')", "ride_minutes_minute"
    ),
    CheckConstraint("rides >= 0", "ride_minutes_rides"),
    CheckConstraint("distance >= 0 AND distance <> 'NaN'", "ride_minutes_distance"),
    CheckConstraint("upto >= 0", "ride_minutes_upto"),
)

rollup_state = Table(
    "rollup_state",
    metadata,
    Column("only_row", Boolean, primary_key=True, server_default=text("true")),
    Column("complete_to", BigInteger, nullable=False, server_default=FIRST),
    Column("generation", Text, nullable=False, server_default=text("''")),
    Column("ick", Text, nullable=False, server_default=text("''")),
    CheckConstraint("only_row", "rollup_state_only_row"),
    CheckConstraint("complete_to >= 0", "rollup_state_complete_to"),
    CheckConstraint("generation ~ '^([0-9a-f]{16})?$'", "rollup_state_generation"),
    CheckConstraint("ick ~ '^([0-9a-f]{16})?$'", "rollup_state_ick"),
)

set_aside_minutes = Table(
    "set_aside_minutes",
    metadata,
    Column("minute", Moment, primary_key=True),
    Column("lowest_ride_id", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("set_aside_at", Moment, nullable=False, server_default=NOW),
    Column("retry", Boolean, nullable=False, server_default=text("false")),
)
