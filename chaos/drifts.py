"""The drifts that the nemesis makes for the nightly job to find, and what Postgres says of each.

A drift and its row in `chaos.drifts` are committed together. So a restore, or a fail-over with
loss, that undoes a drift forgets its row, too, and one that brings a repaired drift back brings its
row back. Whether a drift is there is always asked, in one snapshot, never concluded:

* of a total: as many resets were applied to it as when a millimetre was added;
* of a minute: its row still carries the figures that the nemesis gave it. The rollup may compute
  it anew by itself, since a ride may come late;
* of an outcome: its ride has none.

None is made on a victim that has one. So no two of them ever add up.
"""

import random
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple
from uuid import uuid4

import psycopg

from chaos.fleet import CONSUMERS, Fleet
from rocket_rides.database import one_row
from rocket_rides.errors import Unavailable

TOTAL, MINUTE, OUTCOME = "total", "minute", "outcome"
MILLIMETRE = Decimal("0.001")
ANY_OUTCOME = 0.25  # how often it is one that a night has looked at before
NEVER = float("inf")
# What Postgres says while it is down, goes down, or starts. Anything else is a mistake of ours.
AWAY = (psycopg.OperationalError, psycopg.InternalError, Unavailable)

SCHEMA = "CREATE SCHEMA chaos"
TABLE = """
    CREATE TABLE chaos.drifts (
        token text PRIMARY KEY,
        kind text NOT NULL,
        victim text NOT NULL,  -- a consumer, the beginning of a minute, or a ride
        mark text NOT NULL,  -- resets applied so far; the minute's false figures; the lost outcome
        last_ride_id bigint NOT NULL DEFAULT 0  -- where the consumer stood
    )
"""
VIEW = """
    CREATE VIEW chaos.known_drifts AS SELECT *, CASE kind
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
# By the newest runs that say so: the next one goes on from there.
PROVED = """
    SELECT coalesce((
        SELECT (compared #>> '{rollup,proved_upto}')::bigint FROM reconciliations
        WHERE compared #> '{rollup,proved_upto}' IS NOT NULL ORDER BY id DESC LIMIT 1
    ), 0), coalesce((
        SELECT (compared #>> '{receipts,proved_upto}')::bigint FROM reconciliations
        WHERE compared #> '{receipts,proved_upto}' IS NOT NULL ORDER BY id DESC LIMIT 1
    ), 0)
"""
WRONG_TOTAL = """
    WITH victim AS (
        SELECT name, resets_applied, last_ride_id FROM checkpoints
        WHERE kind = 'total' AND name = %(victim)s AND NOT EXISTS (
            SELECT FROM chaos.known_drifts WHERE is_there AND (kind, victim) = ('total', name)
        )
        FOR UPDATE
    ), changed AS (
        UPDATE consumer_states SET total_distance = total_distance + 0.001 FROM victim
        WHERE consumer_states.name = victim.name
    )
    INSERT INTO chaos.drifts SELECT %(token)s, 'total', name, resets_applied, last_ride_id
    FROM victim RETURNING victim, mark
"""
# One of those that are over, and that the rollup calls right. Never the same figures twice: the
# first drift would seem to be there again.
WRONG_MINUTE = """
    WITH victim AS (
        SELECT minute FROM ride_minutes CROSS JOIN rollup_state
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
        RETURNING ride_minutes.*
    )
    INSERT INTO chaos.drifts
    SELECT %(token)s, 'minute', to_char(minute AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
           concat_ws('/', rides, distance, upto)
    FROM changed RETURNING victim, mark
"""
# For the same reason, never the same ride's twice.
LOST_OUTCOME = """
    WITH victim AS (
        SELECT ride_id, outcome FROM receipts CROSS JOIN receipts_state
        WHERE ride_id > %(after)s AND ride_id <= complete_to AND outcome IS NOT NULL
          AND ride_id::text NOT IN (SELECT victim FROM chaos.drifts WHERE kind = 'outcome')
        ORDER BY md5(concat(ride_id, %(token)s::text)) LIMIT 1 FOR UPDATE OF receipts
    ), gone AS (
        DELETE FROM receipts USING victim WHERE receipts.ride_id = victim.ride_id
    )
    INSERT INTO chaos.drifts SELECT %(token)s, 'outcome', ride_id, outcome FROM victim
    RETURNING victim, mark
"""
# Whether a drift is there; and whether a night that compared the minutes up to one ride, and the
# receipts up to another, and had proved so much before, had to come across it: of a minute, when
# none of its rides was yet to come, and when its day had rides that were new.
LOOK = """
    SELECT token, is_there, is_there AND CASE kind
        WHEN 'total' THEN true
        WHEN 'outcome' THEN victim::bigint > %(receipts_after)s
                        AND victim::bigint <= %(receipts_upto)s
        ELSE NOT EXISTS (
            SELECT FROM rides WHERE id > %(minutes_upto)s
            AND created_at >= victim::timestamptz
            AND created_at < victim::timestamptz + interval '1 minute'
        ) AND EXISTS (
            SELECT FROM rides WHERE id > %(minutes_after)s AND id <= %(minutes_upto)s
            AND date_trunc('day', created_at, 'UTC')
                = date_trunc('day', victim::timestamptz, 'UTC')
        ) AND NOT EXISTS (SELECT FROM set_aside_minutes WHERE minute = victim::timestamptz)
    END FROM chaos.known_drifts
"""


@dataclass
class Drift:
    """One that the nemesis made, or tried to. Times are monotonic.

    Whoever lost the answer to its commit can't know whether there ever was one.
    """

    token: str
    kind: str
    victim: str
    mark: str
    tried: float  # not there before
    settled: float = NEVER  # from here on, a look shows whether it is

    def __str__(self) -> str:
        return f"the drift of the {self.kind} {self.victim}"


def figures(mark: str) -> tuple[int, Decimal]:
    """The rides and the metres of a minute, without its label."""
    rides, distance, _ = mark.split("/")
    return int(rides), Decimal(distance)


class Proved(NamedTuple):
    """Up to which rides the minutes, and the receipts, were proved."""

    minutes: int = 0
    receipts: int = 0


NOTHING = Proved()


class Look(NamedTuple):
    """Which drifts were there at some moment between the two, which are monotonic."""

    asked: float
    answered: float
    there: frozenset[str]  # tokens
    due: frozenset[str]  # of those, the ones that a night which has ended had to come across
    proved: Proved


class Final(NamedTuple):
    """A drift as Postgres knows it in the end."""

    kind: str
    victim: str
    mark: str
    last_ride_id: int = 0
    is_there: bool = False


@dataclass
class Drifts:
    """All that were made in the database of `fleet`, and all looks at them."""

    fleet: Fleet
    made: dict[str, Drift] = field(default_factory=dict)  # by token
    looks: list[Look] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self) -> None:
        """Before there are any. Raises psycopg.Error or Unavailable."""
        with closing(self.fleet.connect()) as connection:
            for statement in (SCHEMA, TABLE, VIEW):
                connection.execute(statement)

    def make(self, kind: str, dice: random.Random) -> Drift | None:
        """Commit one; None if there is no victim. Raises psycopg.Error or Unavailable.

        It is in `made` before it is committed, for the answer may be lost.
        """
        token = uuid4().hex
        values: dict[str, object] = {"token": token, "victim": dice.choice(CONSUMERS)}
        rides = dice.randint(0, 1)
        values |= {"rides": rides, "distance": MILLIMETRE * (1 - rides)}
        looked_at_before = dice.random() < ANY_OUTCOME
        with self._guard, closing(self.fleet.connect()) as connection:
            proved = Proved(*one_row(connection.execute(PROVED)))
            values["after"] = 0 if looked_at_before else proved.receipts
            tried = time.monotonic()
            try:
                with connection.transaction():
                    row = connection.execute(STATEMENTS[kind], values).fetchone()
                    if row is None:
                        return None
                    victim, mark = row
                    self.made[token] = drift = Drift(token, kind, victim, mark, tried)
            finally:
                connection.close()
                if token in self.made:
                    self.made[token].settled = time.monotonic()
        return drift

    def look(
        self,
        after: Proved = NOTHING,
        upto: Proved = NOTHING,
    ) -> Look | None:
        """See which are there, and which are due; None if Postgres does not answer."""
        values = {
            f"{what}_{name}": value
            for name, proved in (("after", after), ("upto", upto))
            for what, value in proved._asdict().items()
        }
        asked = time.monotonic()
        try:
            with closing(self.fleet.connect()) as connection:
                rows = connection.execute(LOOK, values).fetchall()
                proved = Proved(*one_row(connection.execute(PROVED)))
        except AWAY:
            return None
        there = frozenset(token for token, is_there, _ in rows if is_there)
        due = frozenset(token for token, _, is_due in rows if is_due)
        look = Look(asked, time.monotonic(), there, due, proved)
        self.looks.append(look)
        return look


STATEMENTS: Mapping[str, str] = {
    TOTAL: WRONG_TOTAL,
    MINUTE: WRONG_MINUTE,
    OUTCOME: LOST_OUTCOME,
}
FINAL = "SELECT kind, victim, mark, last_ride_id, is_there FROM chaos.known_drifts"


def read_drifts(connection: psycopg.Connection) -> list[Final]:
    """All that this database knows of. Raises psycopg.Error."""
    return [Final(*row) for row in connection.execute(FINAL)]
