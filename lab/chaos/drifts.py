"""The drifts: errors that the nemesis writes into tables, for the nightly job to find and repair.

A drift and its row in `chaos.drifts` are one transaction. So a restore, or a fail-over with loss,
undoes both together; one that undoes a repair brings the drift back. Whether a drift is there is
always asked of the tables (`chaos.known_drifts`): of a total, while as many resets are applied as
when the millimetre was added; of a minute, while its row has the figures that the nemesis gave it;
of an outcome, while its ride has none.

A victim never has two drifts, so drifts never add up. A minute or an outcome gets only one ever:
after a second one, the first would seem to be there again. One total is always left right: if all
are off by the same, the job suspects itself, and rightly repairs nothing.
"""

import random

import psycopg

from lab.chaos import refusals
from lab.chaos.fleet import CONSUMERS
from unified_log.errors import Unavailable

TOTAL, MINUTE, OUTCOME = "total", "minute", "outcome"
# Errors of a Postgres that is down, goes down, or starts. Any other is a mistake in chaos.
AWAY = (psycopg.OperationalError, psycopg.InternalError, Unavailable)

# A kind of record that no consumer handles, as docs/add-a-kind.md has it.
NOTES = """
    DO $$ BEGIN IF to_regclass('notes') IS NULL THEN
        CREATE TABLE notes (
            id bigint PRIMARY KEY DEFAULT nextval('log_position'),
            created_at timestamptz NOT NULL DEFAULT now()
        );
        PERFORM attach('notes', 'id', 'note.create', $data$jsonb_build_object('id', id)$data$);
    END IF; END $$
"""
TABLE = """
    CREATE SCHEMA IF NOT EXISTS chaos;
    CREATE TABLE IF NOT EXISTS chaos.drifts (
        kind text NOT NULL,
        victim text NOT NULL,  -- a consumer, the beginning of a minute, or a ride
        mark text NOT NULL,  -- resets applied so far; the minute's false figures; the lost outcome
        made_after bigint NOT NULL,  -- the newest reconciliation at that time
        PRIMARY KEY (kind, victim, mark)
    );
    CREATE TABLE IF NOT EXISTS chaos.tamperings (
        what text PRIMARY KEY,  -- rides, or the state of a total
        after_run bigint NOT NULL,  -- the newest run at that time
        upto_run bigint  -- the newest run when it was undone
    );
    CREATE OR REPLACE VIEW chaos.known_drifts AS SELECT *, CASE kind
        WHEN 'total' THEN EXISTS (
            SELECT FROM checkpoints
            WHERE (checkpoints.kind, name, resets_applied::text) = ('total', victim, mark)
        )
        WHEN 'minute' THEN EXISTS (
            SELECT FROM ride_minutes WHERE minute = victim::timestamptz
            AND concat_ws('/', rides, distance, upto) = mark
        )
        ELSE NOT EXISTS (
            SELECT FROM receipts WHERE ride_id = victim::bigint AND outcome IS NOT NULL
        )
    END AS is_there FROM chaos.drifts
"""
WRONG_TOTAL = """
    WITH victim AS (
        SELECT name, resets_applied FROM checkpoints
        WHERE kind = 'total' AND name = %(consumer)s AND NOT EXISTS (
            SELECT FROM chaos.known_drifts WHERE is_there AND (kind, victim) = ('total', name)
        ) AND EXISTS (
            SELECT FROM checkpoints other
            WHERE other.kind = 'total' AND other.name <> checkpoints.name AND other.name NOT IN (
                SELECT victim FROM chaos.known_drifts WHERE is_there AND kind = 'total'
            )
        )
        FOR UPDATE
    ), changed AS (
        UPDATE consumer_states SET total_distance = total_distance + 0.001 FROM victim
        WHERE consumer_states.name = victim.name
    )
    INSERT INTO chaos.drifts
    SELECT 'total', name, resets_applied, (SELECT coalesce(max(id), 0) FROM reconciliations)
    FROM victim
    RETURNING victim, mark
"""
# The oldest minute that is over, complete, and had no drift: it gets a ride, or a millimetre, more.
WRONG_MINUTE = """
    WITH victim AS (
        SELECT minute FROM ride_minutes CROSS JOIN rollup_state
        WHERE minute < (SELECT max(minute) FROM ride_minutes) AND upto <= complete_to
          AND minute::text NOT IN (SELECT victim FROM chaos.drifts)
        ORDER BY minute LIMIT 1 FOR UPDATE OF ride_minutes
    ), changed AS (
        UPDATE ride_minutes
        SET rides = rides + %(rides)s::int, distance = distance + 0.001 * (1 - %(rides)s::int)
        FROM victim WHERE ride_minutes.minute = victim.minute
        RETURNING victim.minute, concat_ws('/', rides, distance, upto) AS mark
    )
    INSERT INTO chaos.drifts
    SELECT 'minute', minute, mark, (SELECT coalesce(max(id), 0) FROM reconciliations) FROM changed
    RETURNING victim, mark
"""
# The newest, because the next run goes on from there.
LOST_OUTCOME = """
    WITH victim AS (
        SELECT ride_id, outcome FROM receipts CROSS JOIN receipts_state
        WHERE ride_id <= complete_to AND outcome IS NOT NULL
          AND ride_id::text NOT IN (SELECT victim FROM chaos.drifts)
        ORDER BY ride_id DESC LIMIT 1 FOR UPDATE OF receipts
    ), gone AS (
        DELETE FROM receipts USING victim WHERE receipts.ride_id = victim.ride_id
    )
    INSERT INTO chaos.drifts
    SELECT 'outcome', ride_id, outcome, (SELECT coalesce(max(id), 0) FROM reconciliations)
    FROM victim
    RETURNING victim, mark
"""
STATEMENTS = {TOTAL: WRONG_TOTAL, MINUTE: WRONG_MINUTE, OUTCOME: LOST_OUTCOME}


def prepare(connection: psycopg.Connection) -> None:
    """Create the schema, unless it exists. Raises psycopg.Error."""
    for statements in (TABLE, NOTES, refusals.TABLE):
        connection.execute(statements, prepare=False)


def make(connection: psycopg.Connection, kind: str, dice: random.Random) -> str | None:
    """Commit a drift, one at a time; None if there is no victim. Raises psycopg.Error."""
    values = {"rides": dice.randint(0, 1), "consumer": dice.choice(CONSUMERS)}
    row = connection.execute(STATEMENTS[kind], values).fetchone()
    return f"{kind} {row[0]} ({row[1]})" if row else None
