"""The drifts that the nemesis makes for the nightly job to find, and what Postgres says of each.

A drift and its row in `chaos.drifts` are committed together. So a restore, or a fail-over with
loss, that undoes a drift forgets its row, too, and one that brings a repaired drift back brings its
row back. Whether a drift is there is always asked, in one snapshot, never concluded:

* of a total: as many resets were applied to it as when a millimetre was added;
* of a minute: its row still carries the figures that the nemesis gave it. The rollup may compute
  it anew by itself, since a ride may come late;
* of an outcome: its ride has none.

None is made on a victim that has one, so no two of them ever add up; and none twice with the same
figures, or the first would seem to be there again.
"""

import random
import threading
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import uuid4

import psycopg

from lab.chaos.fleet import CONSUMERS, Fleet
from rocket_rides.errors import Unavailable

TOTAL, MINUTE, OUTCOME = "total", "minute", "outcome"
MILLIMETRE = Decimal("0.001")
ANY_OUTCOME = 0.25  # how often it is one that a night has looked at before
# What Postgres says while it is down, goes down, or starts. Anything else is a mistake of ours.
AWAY = (psycopg.OperationalError, psycopg.InternalError, Unavailable)

TABLE = """
    CREATE SCHEMA IF NOT EXISTS chaos;
    CREATE TABLE IF NOT EXISTS chaos.drifts (
        token text PRIMARY KEY,
        kind text NOT NULL,
        victim text NOT NULL,  -- a consumer, the beginning of a minute, or a ride
        mark text NOT NULL,  -- resets applied so far; the minute's false figures; the lost outcome
        last_ride_id bigint NOT NULL DEFAULT 0,  -- where the consumer stood
        made_after bigint NOT NULL DEFAULT 0  -- the newest reconciliation at that time
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
        SELECT name, resets_applied, last_ride_id FROM checkpoints
        WHERE kind = 'total' AND name = %(consumer)s AND NOT EXISTS (
            SELECT FROM chaos.known_drifts WHERE is_there AND (kind, victim) = ('total', name)
        )
        FOR UPDATE
    ), changed AS (
        UPDATE consumer_states SET total_distance = total_distance + 0.001 FROM victim
        WHERE consumer_states.name = victim.name
    )
    INSERT INTO chaos.drifts
    SELECT %(token)s, 'total', name, resets_applied, last_ride_id,
           (SELECT coalesce(max(id), 0) FROM reconciliations)
    FROM victim
    RETURNING victim, mark
"""
# One of those that are over, and that the rollup calls right.
WRONG_MINUTE = """
    WITH victim AS (
        SELECT minute, to_char(minute AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS name
        FROM ride_minutes CROSS JOIN rollup_state
        WHERE minute < (SELECT max(minute) FROM ride_minutes) AND upto <= complete_to
          AND NOT EXISTS (
            SELECT FROM chaos.known_drifts WHERE (kind, victim) = (
                'minute', to_char(minute AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            ) AND (is_there OR mark = concat_ws(
                '/', rides + %(rides)s::int, distance + %(distance)s::numeric, upto
            ))
        )
        ORDER BY md5(concat(minute, %(token)s::text)) LIMIT 1 FOR UPDATE OF ride_minutes
    ), changed AS (
        UPDATE ride_minutes
        SET rides = rides + %(rides)s::int, distance = distance + %(distance)s::numeric
        FROM victim WHERE ride_minutes.minute = victim.minute
        RETURNING name, concat_ws('/', rides, distance, upto) AS mark
    )
    INSERT INTO chaos.drifts
    SELECT %(token)s, 'minute', name, mark, 0,
           (SELECT coalesce(max(id), 0) FROM reconciliations)
    FROM changed
    RETURNING victim, mark
"""
# Mostly one that no night has looked at: the next one goes on from there.
LOST_OUTCOME = """
    WITH victim AS (
        SELECT ride_id, outcome FROM receipts CROSS JOIN receipts_state
        WHERE ride_id <= complete_to AND outcome IS NOT NULL
          AND (%(any)s OR ride_id > coalesce((
            SELECT (compared #>> '{receipts,proved_upto}')::bigint FROM reconciliations
            WHERE compared #> '{receipts,proved_upto}' IS NOT NULL ORDER BY id DESC LIMIT 1
          ), 0))
          AND ride_id::text NOT IN (SELECT victim FROM chaos.drifts WHERE kind = 'outcome')
        ORDER BY md5(concat(ride_id, %(token)s::text)) LIMIT 1 FOR UPDATE OF receipts
    ), gone AS (
        DELETE FROM receipts USING victim WHERE receipts.ride_id = victim.ride_id
    )
    INSERT INTO chaos.drifts
    SELECT %(token)s, 'outcome', ride_id, outcome, 0,
           (SELECT coalesce(max(id), 0) FROM reconciliations)
    FROM victim
    RETURNING victim, mark
"""
STATEMENTS = {TOTAL: WRONG_TOTAL, MINUTE: WRONG_MINUTE, OUTCOME: LOST_OUTCOME}
THERE = "SELECT token FROM chaos.known_drifts WHERE is_there"


def prepare(connection: psycopg.Connection) -> None:
    """Before there are any; once more does no harm. Raises psycopg.Error."""
    connection.execute(TABLE, prepare=False)


def there(connection: psycopg.Connection) -> list[str]:
    """The tokens of the drifts that are there now. Raises psycopg.Error."""
    return [token for (token,) in connection.execute(THERE)]


@dataclass
class Drifts:
    """Makes them in the database of `fleet`."""

    fleet: Fleet
    made: int = 0  # or tried: the answer may have been lost
    outcomes: set[int] = field(default_factory=set)  # rides whose outcome was deleted, or was to be
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def make(self, kind: str, dice: random.Random) -> str | None:
        """Commit one; None if there is no victim. Raises psycopg.Error or Unavailable."""
        rides = dice.randint(0, 1)
        values = {
            "token": uuid4().hex,
            "consumer": dice.choice(CONSUMERS),
            "rides": rides,
            "distance": MILLIMETRE * (1 - rides),
            "any": dice.random() < ANY_OUTCOME,
        }
        with self._guard, closing(self.fleet.connect()) as connection, connection.transaction():
            row = connection.execute(STATEMENTS[kind], values).fetchone()
            if row is None:
                return None
            victim, mark = row
            self.made += 1
            if kind == OUTCOME:
                self.outcomes.add(int(victim))
        return f"{kind} {victim} ({mark})"
