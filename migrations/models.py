"""The tables as models, for Alembic alone: the services use SQL. A test compares the two."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    String,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from rocket_rides.settings import KEY_LENGTH, NAME_LENGTH

Distance = Numeric(12, 3)
TotalDistance = Numeric(38, 3)
# NaN is greater than every number in Postgres, so the upper bound also keeps it out.
DISTANCE_IN_RANGE = "distance > 0 AND distance <= 999999999.999"


class Base(DeclarativeBase):
    """All tables."""


class RideModel(Base):
    """The source of truth. A row never changes after its transaction commits."""

    __tablename__ = "rides"
    __table_args__ = (
        CheckConstraint(DISTANCE_IN_RANGE, name="rides_distance_in_range"),
        # Finds the rides of a minute. It costs an INSERT next to nothing.
        Index(
            "rides_created_at",
            "created_at",
            postgresql_using="brin",
            postgresql_with={"pages_per_range": 32, "autosummarize": "on"},
        ),
    )

    # The INSERT itself draws the number, while it holds its lock on `rides`: the streamer's barrier
    # relies on that order. ALWAYS keeps anyone from supplying a number of their own.
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    created_at: Mapped[datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.now(), nullable=False
    )
    distance: Mapped[Decimal] = mapped_column(Distance, nullable=False)


class StagedLogRecordModel(Base):
    """The outbox: records that are still to be sent to the log. Its id is the ride's."""

    __tablename__ = "staged_log_records"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    action: Mapped[str] = mapped_column(Text, nullable=False)
    object: Mapped[str] = mapped_column(Text, nullable=False)
    data: Mapped[dict[str, Any]] = mapped_column(JSONB, nullable=False)


class StreamerStateModel(Base):
    """One row: the id of the last record that the streamer sent and committed."""

    __tablename__ = "streamer_state"
    __table_args__ = (
        CheckConstraint("only_row", name="streamer_state_only_row"),
        CheckConstraint("last_sent_id >= 0", name="streamer_state_last_sent"),
        CheckConstraint("records_sent >= 0", name="streamer_state_records_sent"),
    )

    only_row: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    last_sent_id: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))
    # How many records it ever sent and committed, each once, and how many were mended: together
    # with what is staged, that is all rides.
    records_sent: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))


class TermModel(Base):
    """One leader's term: its entries count for `after < id`, up to where the next term begins.

    `rocket_rides/terms.py` says what that is for.
    """

    __tablename__ = "terms"
    __table_args__ = (
        CheckConstraint("after >= 0", name="terms_after"),
        CheckConstraint("term ~ '^[0-9a-f]{16}$'", name="terms_term"),
    )

    after: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    term: Mapped[str] = mapped_column(Text, unique=True, nullable=False)
    # The terms that this one replaced: nothing was committed under them.
    void: Mapped[list[str]] = mapped_column(
        ARRAY(Text), nullable=False, server_default=text("'{}'")
    )
    began_at: Mapped[datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.now(), nullable=False
    )


class CheckpointModel(Base):
    """Where a reader stands. A name is unique among readers of the same kind."""

    __tablename__ = "checkpoints"
    __table_args__ = (
        UniqueConstraint("kind", "name"),
        CheckConstraint("length(kind) BETWEEN 1 AND 64", name="checkpoints_kind"),
        CheckConstraint("last_ride_id >= 0", name="checkpoints_last_ride_id"),
        CheckConstraint(
            "CASE WHEN last_redis_id ~ '^[0-9]+-[0-9]+$'"
            " THEN split_part(last_redis_id, '-', 1)::numeric <= 18446744073709551615"
            " AND split_part(last_redis_id, '-', 2)::numeric <= 18446744073709551615"
            " ELSE false END",
            name="checkpoints_last_redis_id",
        ),
        CheckConstraint("unbelieved_entries >= 0", name="checkpoints_unbelieved_entries"),
        CheckConstraint("furthest >= 0", name="checkpoints_furthest"),
        CheckConstraint("gaps_healed >= 0", name="checkpoints_gaps_healed"),
        CheckConstraint("rides_healed >= 0", name="checkpoints_rides_healed"),
        CheckConstraint("resends_skipped >= 0", name="checkpoints_resends_skipped"),
        CheckConstraint("entries_set_aside >= 0", name="checkpoints_entries_set_aside"),
        CheckConstraint("crashes_injected >= 0", name="checkpoints_crashes_injected"),
        CheckConstraint("resets_applied >= 0", name="checkpoints_resets_applied"),
        CheckConstraint(
            "distance_healed >= 0 AND distance_healed <> 'NaN'", name="checkpoints_distance_healed"
        ),
        CheckConstraint(f"length(name) BETWEEN 1 AND {NAME_LENGTH}", name="checkpoints_name"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    name: Mapped[str] = mapped_column(Text, nullable=False)
    kind: Mapped[str] = mapped_column(Text, nullable=False, server_default=text("'outside'"))
    last_redis_id: Mapped[str] = mapped_column(Text, nullable=False, server_default=text("'0-0'"))
    last_ride_id: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))
    # Entries about no ride of this database: another database's, or never committed.
    unbelieved_entries: Mapped[int] = mapped_column(
        BigInteger, nullable=False, server_default=text("0")
    )
    # What it met and healed so far: counted in the transactions that the counts are about. Readers
    # outside of this project leave all of it at 0.
    gaps_healed: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))
    rides_healed: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))
    # Not those that the rollup meets where a new lead marks again: they pass as first readings.
    resends_skipped: Mapped[int] = mapped_column(
        BigInteger, nullable=False, server_default=text("0")
    )
    entries_set_aside: Mapped[int] = mapped_column(
        BigInteger, nullable=False, server_default=text("0")
    )
    # Each by the next session: its own transaction was undone.
    crashes_injected: Mapped[int] = mapped_column(
        BigInteger, nullable=False, server_default=text("0")
    )
    resets_applied: Mapped[int] = mapped_column(
        BigInteger, nullable=False, server_default=text("0")
    )
    distance_healed: Mapped[Decimal] = mapped_column(  # in metres
        TotalDistance, nullable=False, server_default=text("0")
    )
    # As far as it ever was, up to the last time that it was set back to an earlier ride.
    furthest: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))
    # When last_ride_id last rose.
    counted_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class ConsumerStateModel(Base):
    """What a consumer has added up, in metres. Moves with its checkpoint, in one transaction."""

    __tablename__ = "consumer_states"
    __table_args__ = (
        ForeignKeyConstraint(
            ["kind", "name"], ["checkpoints.kind", "checkpoints.name"], ondelete="CASCADE"
        ),
        CheckConstraint("kind = 'total'", name="consumer_states_kind"),
        CheckConstraint(
            "total_distance >= 0 AND total_distance <> 'NaN'", name="consumer_states_total_distance"
        ),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True, nullable=False)
    kind: Mapped[str] = mapped_column(Text, nullable=False, server_default=text("'total'"))
    total_distance: Mapped[Decimal] = mapped_column(
        TotalDistance, nullable=False, server_default=text("0")
    )


class ReconciliationModel(Base):
    """The total of all rides up to `last_ride_id`, in metres, summed from the rides themselves.

    `compared` is what the consumers and the warehouse said at the time.
    """

    __tablename__ = "reconciliations"
    __table_args__ = (
        CheckConstraint("last_ride_id >= 0", name="reconciliations_last_ride_id"),
        CheckConstraint(
            "total_distance >= 0 AND total_distance <> 'NaN'", name="reconciliations_total_distance"
        ),
        CheckConstraint("rides >= 0", name="reconciliations_rides"),
        CheckConstraint(
            "duration_seconds >= 0 AND duration_seconds <> 'NaN'",
            name="reconciliations_duration_seconds",
        ),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    last_ride_id: Mapped[int] = mapped_column(BigInteger, nullable=False)
    total_distance: Mapped[Decimal] = mapped_column(TotalDistance, nullable=False)
    rides: Mapped[int] = mapped_column(BigInteger, nullable=False)
    duration_seconds: Mapped[Decimal] = mapped_column(Numeric(12, 3), nullable=False)
    compared: Mapped[Any] = mapped_column(JSONB, nullable=False)
    created_at: Mapped[datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.now(), nullable=False
    )


class ResetModel(Base):
    """A reconciliation's request to a consumer, which alone acts on it: `totals/reset.py`."""

    __tablename__ = "resets"
    __table_args__ = (
        UniqueConstraint("reconciliation_id", "consumer_name"),
        ForeignKeyConstraint(
            ["consumer_kind", "consumer_name"],
            ["checkpoints.kind", "checkpoints.name"],
            ondelete="CASCADE",
        ),
        CheckConstraint("consumer_kind = 'total'", name="resets_consumer_kind"),
        CheckConstraint("status IN ('pending', 'applied', 'superseded')", name="resets_status"),
        CheckConstraint("(status = 'pending') = (changed_at IS NULL)", name="resets_changed_at"),
        CheckConstraint(
            "num_nonnulls(from_ride_id, from_total, to_ride_id, to_total)"
            " = CASE status WHEN 'applied' THEN 4 ELSE 0 END",
            name="resets_from_and_to",
        ),
        Index("resets_newest", "consumer_name", "id"),
        Index("resets_pending", "consumer_name", postgresql_where=text("status = 'pending'")),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    reconciliation_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("reconciliations.id"), nullable=False
    )
    consumer_name: Mapped[str] = mapped_column(Text, nullable=False)
    consumer_kind: Mapped[str] = mapped_column(Text, nullable=False, server_default=text("'total'"))
    status: Mapped[str] = mapped_column(Text, nullable=False, server_default=text("'pending'"))
    changed_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    # Where the consumer stood before and after: the ride, and the total in metres.
    from_ride_id: Mapped[int | None] = mapped_column(BigInteger)
    from_total: Mapped[Decimal | None] = mapped_column(TotalDistance)
    to_ride_id: Mapped[int | None] = mapped_column(BigInteger)
    to_total: Mapped[Decimal | None] = mapped_column(TotalDistance)


class DeadLetterModel(Base):
    """A log entry that is not a record, verbatim: names and values in turn."""

    __tablename__ = "dead_letters"
    __table_args__ = (UniqueConstraint("consumer_kind", "consumer_name", "redis_id"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    consumer_name: Mapped[str] = mapped_column(Text, nullable=False)
    consumer_kind: Mapped[str] = mapped_column(Text, nullable=False, server_default=text("'total'"))
    redis_id: Mapped[str] = mapped_column(Text, nullable=False)
    fields: Mapped[list[bytes]] = mapped_column(ARRAY(LargeBinary), nullable=False)
    reason: Mapped[str] = mapped_column(Text, nullable=False)
    created_at: Mapped[datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.now(), nullable=False
    )


class RideMinuteModel(Base):
    """The rides that were requested in a minute, in UTC: how many, and their metres.

    It counts the rides up to `upto` and no others.
    """

    __tablename__ = "ride_minutes"
    __table_args__ = (
        CheckConstraint(
            "isfinite(minute) AND minute = date_trunc('minute', minute, 'UTC')",
            name="ride_minutes_minute",
        ),
        CheckConstraint("rides >= 0", name="ride_minutes_rides"),
        CheckConstraint("distance >= 0 AND distance <> 'NaN'", name="ride_minutes_distance"),
        CheckConstraint("upto >= 0", name="ride_minutes_upto"),
    )

    minute: Mapped[datetime] = mapped_column(DateTime(timezone=True), primary_key=True)
    rides: Mapped[int] = mapped_column(BigInteger, nullable=False)
    distance: Mapped[Decimal] = mapped_column(TotalDistance, nullable=False)
    upto: Mapped[int] = mapped_column(BigInteger, nullable=False)


class RollupStateModel(Base):
    """One row: up to which ride every minute is right, and who may say so.

    `consumers/rollup/generation.py` says what a generation is.
    """

    __tablename__ = "rollup_state"
    __table_args__ = (
        CheckConstraint("only_row", name="rollup_state_only_row"),
        CheckConstraint("complete_to >= 0", name="rollup_state_complete_to"),
        CheckConstraint("generation ~ '^([0-9a-f]{16})?$'", name="rollup_state_generation"),
        CheckConstraint("ick ~ '^([0-9a-f]{16})?$'", name="rollup_state_ick"),
    )

    only_row: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    complete_to: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))
    generation: Mapped[str] = mapped_column(Text, nullable=False, server_default=text("''"))
    # The generation whose Ick may still be in Redis: a mend begins a generation without an Ick.
    ick: Mapped[str] = mapped_column(Text, nullable=False, server_default=text("''"))


class SetAsideMinuteModel(Base):
    """A minute that could not be computed, and why. `retry`: somebody asked to try it again."""

    __tablename__ = "set_aside_minutes"

    minute: Mapped[datetime] = mapped_column(DateTime(timezone=True), primary_key=True)
    lowest_ride_id: Mapped[int] = mapped_column(BigInteger, nullable=False)
    reason: Mapped[str] = mapped_column(Text, nullable=False)
    attempts: Mapped[int] = mapped_column(Integer, nullable=False)
    set_aside_at: Mapped[datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.now(), nullable=False
    )
    retry: Mapped[bool] = mapped_column(nullable=False, server_default=text("false"))


class RecomputationModel(Base):
    """A reconciliation's request to the rollup, which alone acts on it: a minute that was wrong."""

    __tablename__ = "recomputations"
    __table_args__ = (
        UniqueConstraint("reconciliation_id", "minute"),
        CheckConstraint(
            "isfinite(minute) AND minute = date_trunc('minute', minute, 'UTC')",
            name="recomputations_minute",
        ),
        CheckConstraint("lowest_ride_id > 0", name="recomputations_lowest_ride_id"),
        CheckConstraint("status IN ('pending', 'done', 'set aside')", name="recomputations_status"),
        CheckConstraint(
            "(status = 'pending') = (changed_at IS NULL)", name="recomputations_changed_at"
        ),
        Index("recomputations_pending", "id", postgresql_where=text("status = 'pending'")),
        Index("recomputations_open", "minute", postgresql_where=text("status <> 'done'")),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    reconciliation_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("reconciliations.id"), nullable=False
    )
    minute: Mapped[datetime] = mapped_column(DateTime(timezone=True), nullable=False)
    # Of the minute's rides; where it has none, of those up to which it was compared.
    lowest_ride_id: Mapped[int] = mapped_column(BigInteger, nullable=False)
    status: Mapped[str] = mapped_column(Text, nullable=False, server_default=text("'pending'"))
    changed_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class ReceiptModel(Base):
    """What came of a ride's receipt so far, from its first attempt: `consumers/receipts/`.

    Its outcome is empty until it is delivered or dead. A dead one may be marked to be sent again,
    or dropped.
    """

    __tablename__ = "receipts"
    __table_args__ = (
        CheckConstraint("outcome IN ('delivered', 'dead')", name="receipts_outcome"),
        CheckConstraint("attempts >= 0", name="receipts_attempts"),
        CheckConstraint("unfinished >= 0", name="receipts_unfinished"),
        CheckConstraint("forgiven >= 0", name="receipts_forgiven"),
        CheckConstraint("(outcome IS NULL) = (decided_at IS NULL)", name="receipts_decided_at"),
        CheckConstraint(
            "(outcome = 'dead') IS TRUE = (dead_at IS NOT NULL)"
            " AND (dead_at IS NOT NULL OR num_nonnulls(replay_at, dropped_at) = 0)"
            " AND num_nonnulls(replay_at, dropped_at) < 2",
            name="receipts_dead",
        ),
        Index("receipts_dead", "ride_id", postgresql_where=text("dead_at IS NOT NULL")),
        Index("receipts_replay", "ride_id", postgresql_where=text("replay_at IS NOT NULL")),
        Index(
            "receipts_waiting",
            "ride_id",
            postgresql_where=text(
                "dead_at IS NOT NULL AND dropped_at IS NULL AND replay_at IS NULL"
            ),
        ),
    )

    ride_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    outcome: Mapped[str | None] = mapped_column(Text)
    attempts: Mapped[int] = mapped_column(Integer, nullable=False)  # ever begun
    # Of the last attempts, how many have no known end.
    unfinished: Mapped[int] = mapped_column(Integer, nullable=False, server_default=text("0"))
    # Attempts before the last replay: they don't count towards the most that there may be.
    forgiven: Mapped[int] = mapped_column(Integer, nullable=False, server_default=text("0"))
    reason: Mapped[str | None] = mapped_column(Text)  # why the last attempt failed
    first_at: Mapped[datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.now(), nullable=False
    )
    # Until then the attempt under way belongs to one worker, or the next one must not be made.
    due_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), nullable=False)
    decided_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    dead_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    replay_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    dropped_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class ReceiptsStateModel(Base):
    """One row: which rides get receipts, and up to which ride every one has an outcome."""

    __tablename__ = "receipts_state"
    __table_args__ = (
        CheckConstraint("only_row", name="receipts_state_only_row"),
        CheckConstraint("0 <= since AND since <= complete_to", name="receipts_state_complete_to"),
        CheckConstraint("salt ~ '^[0-9a-f]{32}$'", name="receipts_state_salt"),
    )

    only_row: Mapped[bool] = mapped_column(Boolean, primary_key=True, server_default=text("true"))
    since: Mapped[int] = mapped_column(BigInteger, nullable=False)  # rides after this one
    complete_to: Mapped[int] = mapped_column(BigInteger, nullable=False)
    # How often complete_to was set back: whoever moves it compares this, too.
    mends: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))
    salt: Mapped[str] = mapped_column(Text, nullable=False)  # of each webhook-id


class ReceiptsWorkerModel(Base):
    """What a receipts' worker has done so far; the row without a name: all, before they counted."""

    __tablename__ = "receipts_workers"
    __table_args__ = (
        CheckConstraint("delivered >= 0", name="receipts_workers_delivered"),
        CheckConstraint("dead >= 0", name="receipts_workers_dead"),
        CheckConstraint("swept >= 0", name="receipts_workers_swept"),
    )

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    # How often it decided so: a dead letter that is replayed counts again, and may count in both.
    delivered: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))
    dead: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))
    # Rides that the log had lost before anybody had attempted them, and that it swept up and
    # attempted. One that was attempted before is not among them.
    swept: Mapped[int] = mapped_column(BigInteger, nullable=False, server_default=text("0"))


class IdempotencyKeyModel(Base):
    """A client's promise that equal keys mean one ride. Committed with that ride."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (
        CheckConstraint(DISTANCE_IN_RANGE, name="idempotency_keys_distance_in_range"),
    )

    key: Mapped[str] = mapped_column(String(KEY_LENGTH), primary_key=True)
    distance: Mapped[Decimal] = mapped_column(Distance, nullable=False)
    # Empty only inside the transaction of an older API, which writes the key before the ride.
    ride_id: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(
        DateTime(timezone=True), server_default=func.now(), nullable=False
    )
