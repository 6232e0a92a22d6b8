"""Moving the keys of slots from one cell's database to another's.

A cell's *fence* is a constraint of its `idempotency_keys`: it names the slots that this cell has
given away, and Postgres refuses their keys. So even a request that had passed the router before the
slot was paused, and reaches the old cell an hour later, takes no ride there: its statement fails as
a whole. Nothing depends on how long anybody waits.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg import sql

T = TypeVar("T")

# As HAProxy computes it.
SLOT = "left(encode(sha256(convert_to(key, 'UTF8')), 'hex'), 2)"
FENCE = "idempotency_keys_fence"
FENCED = """
    SELECT coalesce((
        SELECT regexp_matches(pg_get_constraintdef(oid), '{([0-9a-f,]*)}') FROM pg_constraint
        WHERE conrelid = 'idempotency_keys'::regclass AND conname = %s
    ), '{""}')
"""
# NOT VALID: the keys that it has stay, and are not read. It waits until nobody writes keys.
PUT_FENCE = f"""
    ALTER TABLE idempotency_keys DROP CONSTRAINT IF EXISTS {FENCE},
        ADD CONSTRAINT {FENCE} CHECK ({SLOT} <> ALL ({{slots}}::text[])) NOT VALID
"""
OUT = f"""
    COPY (SELECT key, distance, ride_id, created_at FROM idempotency_keys
          WHERE {SLOT} = ANY ({{}}::text[])) TO STDOUT
"""  # noqa: S608
BESIDE = "CREATE TEMPORARY TABLE moving (LIKE idempotency_keys) ON COMMIT DROP"
IN = "COPY moving (key, distance, ride_id, created_at) FROM STDIN"
# A key that is there already came with an earlier move, or is this one's, after a crash.
TAKE_IN = """
    INSERT INTO idempotency_keys (key, distance, ride_id, created_at)
    SELECT key, distance, ride_id, created_at FROM moving ON CONFLICT (key) DO NOTHING
"""
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '1s'"
PAUSE = 0.2  # seconds


def fenced(connection: psycopg.Connection) -> set[str]:
    """The slots whose keys this database refuses."""
    [[found]] = connection.execute(FENCED, [FENCE]).fetchall()
    return {slot for slot in found[0].split(",") if slot}


def refuse(connection: psycopg.Connection, slots: set[str]) -> None:
    """Have this database refuse the keys of these slots; others that it refuses stay refused.

    On return, whatever was under way has its key committed, or will fail.
    """

    def once() -> None:
        with connection.transaction():
            connection.execute(LOCK_TIMEOUT)
            _put_fence(connection, fenced(connection) | slots)

    _patiently(once)


def copy(source: psycopg.Connection, target: psycopg.Connection, slots: set[str]) -> int:
    """Copy the keys of slots that `source` refuses, and have `target` take them; returns how many.

    One transaction of the target's.
    """

    def once() -> int:
        with target.transaction():
            target.execute(LOCK_TIMEOUT)
            target.execute(BESIDE)
            out = sql.SQL(OUT).format(sorted(slots))
            with source.cursor().copy(out) as leaving, target.cursor().copy(IN) as coming:
                for data in leaving:
                    coming.write(data)
            if given_away := fenced(target) & slots:  # late: it keeps others from writing keys
                _put_fence(target, fenced(target) - given_away)
            target.execute(TAKE_IN)
            [[copied]] = target.execute("SELECT count(*) FROM moving").fetchall()
        return int(copied)

    return _patiently(once)


def _patiently(once: Callable[[], T]) -> T:
    """Do it again while somebody holds a lock for long: those who wait behind us go first."""
    while True:
        try:
            return once()
        except psycopg.errors.LockNotAvailable:
            time.sleep(PAUSE)


def _put_fence(connection: psycopg.Connection, slots: set[str]) -> None:
    connection.execute(sql.SQL(PUT_FENCE).format(slots="{" + ",".join(sorted(slots)) + "}"))
