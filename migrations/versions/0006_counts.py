"""Counts of what readers meet and heal, in columns that move with the work that is counted.

So they are as exact as the totals. What was not counted before begins at 0, but for what other
tables tell.

The version before goes on where it is running, and counts nothing: what it sends, delivers or sets
aside after this migration is missing in the counts for ever (docs/limits.md). It does not start any
more. Readers outside of this project have nothing to change, and leave their counts at 0.

All rides and receipts are counted first, without a lock that anybody waits for. Then everything but
POST /rides waits while the columns are added and the receipts are read once more, for the index of
those that wait for a decision: about a second for ten million of them.
"""

from alembic import op
from sqlalchemy import text

revision = "0006"
down_revision = "0005"

COUNTS = (
    "gaps_healed",
    "rides_healed",
    "resends_skipped",
    "entries_set_aside",
    "crashes_injected",
    "resets_applied",
    "furthest",
)

COUNT_RECEIPTS = [
    # A row for each worker: one row for all would make them wait for each other.
    """
    CREATE TABLE receipts_workers (
        name text PRIMARY KEY,
        delivered bigint NOT NULL DEFAULT 0
            CONSTRAINT receipts_workers_delivered CHECK (delivered >= 0),
        dead bigint NOT NULL DEFAULT 0 CONSTRAINT receipts_workers_dead CHECK (dead >= 0),
        swept bigint NOT NULL DEFAULT 0 CONSTRAINT receipts_workers_swept CHECK (swept >= 0)
    ) WITH (fillfactor = 50)
    """,
    # The workers of before, whoever they were. No worker can have this name.
    """
    INSERT INTO receipts_workers (name, delivered, dead)
    SELECT '', count(*) FILTER (WHERE outcome = 'delivered'),
           count(*) FILTER (WHERE outcome = 'dead')
    FROM receipts
    """,
]
# A record that was staged behind the log's back is at or below last_sent, and was not sent.
COUNT_SENT = """
    SELECT upto, (SELECT count(*) FROM rides WHERE id <= upto)
                 - (SELECT count(*) FROM staged_log_records WHERE id <= upto)
    FROM (SELECT last_sent_id AS upto FROM streamer_state) at_first
"""

# Others take these locks in either order. So this gives all of them back when one is not to be had
# at once: it takes part in no deadlock, and nobody waits for long behind it.
LOCK = """
    DO $$ BEGIN
        FOR attempt IN 1..300 LOOP
            BEGIN
                LOCK TABLE streamer_state, checkpoints IN ACCESS EXCLUSIVE MODE;
                LOCK TABLE receipts IN SHARE MODE;
                RETURN;
            EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                PERFORM pg_sleep(0.1);
            END;
        END LOOP;
        RAISE lock_not_available USING MESSAGE =
            'a session keeps streamer_state, checkpoints or receipts locked: end its transaction';
    END $$
"""

UP = [
    "SET LOCAL lock_timeout = '100ms'",
    LOCK,
    "SET LOCAL lock_timeout = DEFAULT",
    "ALTER TABLE checkpoints "
    + ", ".join(
        f"ADD COLUMN {name} bigint NOT NULL DEFAULT 0"
        f" CONSTRAINT checkpoints_{name} CHECK ({name} >= 0)"
        for name in COUNTS
    )
    + """,
    ADD COLUMN distance_healed numeric(38, 3) NOT NULL DEFAULT 0
        CONSTRAINT checkpoints_distance_healed
        CHECK (distance_healed >= 0 AND distance_healed <> 'NaN'),
    ADD COLUMN counted_at timestamptz
    """,
    """
    UPDATE checkpoints SET
        entries_set_aside = (
            SELECT count(*) FROM dead_letters
            WHERE (consumer_kind, consumer_name) = (checkpoints.kind, checkpoints.name)
        ),
        resets_applied = (
            SELECT count(*) FROM resets
            WHERE (consumer_kind, consumer_name) = (checkpoints.kind, checkpoints.name)
              AND status = 'applied'
        )
    """,
    """
    ALTER TABLE streamer_state ADD COLUMN records_sent bigint NOT NULL DEFAULT 0
        CONSTRAINT streamer_state_records_sent CHECK (records_sent >= 0)
    """,
    # Those that wait for somebody's decision, to be counted without those that were dropped.
    """
    CREATE INDEX receipts_waiting ON receipts (ride_id)
    WHERE dead_at IS NOT NULL AND dropped_at IS NULL AND replay_at IS NULL
    """,
]
COUNT_SENT_SINCE = """
    UPDATE streamer_state SET records_sent = greatest(0, :sent
        + (SELECT count(*) FROM rides WHERE id > :upto AND id <= last_sent_id)
        - (SELECT count(*) FROM staged_log_records WHERE id > :upto AND id <= last_sent_id))
"""

DOWN = [
    "DROP INDEX receipts_waiting",
    "DROP TABLE receipts_workers",
    "ALTER TABLE streamer_state DROP COLUMN records_sent",
    "ALTER TABLE checkpoints "
    + ", ".join(f"DROP COLUMN {name}" for name in (*COUNTS, "distance_healed", "counted_at")),
]


def upgrade() -> None:
    for statement in COUNT_RECEIPTS:
        op.execute(statement)
    at_first = op.get_bind().execute(text(COUNT_SENT)).one_or_none()
    for statement in UP:
        op.execute(statement)
    if at_first:
        values = dict(zip(("upto", "sent"), at_first, strict=True))
        op.get_bind().execute(text(COUNT_SENT_SINCE), values)


def downgrade() -> None:
    for statement in DOWN:
        op.execute(statement)
