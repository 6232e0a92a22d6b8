"""The idempotency keys of a cell: how its database takes only some, and gets those of another.

A cell's *fence* is a constraint of its `idempotency_keys`: it names the slots that this cell has,
and Postgres refuses the keys of others. So even a request that the router had sent to the old cell,
and that gets there an hour later, takes no ride: its statement fails as a whole, and the API
answers 503 with Retry-After. Nothing depends on how long anybody waits, or on what HAProxy knows.
"""

import sys
import time
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import TypeVar

import psycopg
from psycopg import sql

from api.booking import FENCE
from cells.router.slots import SLOTS
from rocket_rides import revisions
from rocket_rides.cells import CELL_SIZE
from rocket_rides.locks import Lock
from unified_log import database
from unified_log.errors import Refused
from unified_log.locks import try_lock

T = TypeVar("T")

# Rides wait while we wait for a lock: briefly, and then they have their turn.
LOCK_TIMEOUT, PAUSE = "200ms", 0.5  # the pause in seconds
LOOKS, LOOK_AGAIN = 20, 0.1  # tries to take the lock of moves; seconds between them
SESSION = {
    "lock_timeout": LOCK_TIMEOUT,
    # A session whose program or host is gone ends soon, and with it the lock.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "client_connection_check_interval": "2s",
}

MAY_MOVE = """
    SELECT pg_has_role(relowner, 'USAGE') AND has_database_privilege(current_database(), 'TEMP')
        AND has_table_privilege('rides', 'SELECT')
    FROM pg_class WHERE oid = 'idempotency_keys'::regclass
"""
# Postgres cancels an autovacuum once we have waited for a second (deadlock_timeout). Then we wait
# until nobody writes keys.
LOCK = """
    SET LOCAL lock_timeout = '1500ms';
    LOCK TABLE idempotency_keys IN SHARE UPDATE EXCLUSIVE MODE;
    SET LOCAL lock_timeout = '200ms';
    LOCK TABLE idempotency_keys IN ACCESS EXCLUSIVE MODE
"""
# A key's slot, here and below, as HAProxy computes it. NOT VALID: the keys that it has stay, and
# are not read. A session that copies keys is let through: the cell they are for does not have their
# slots yet. (ALTER TABLE and COPY take no parameters: psycopg writes the slots into them.)
PUT_FENCE = """
    ALTER TABLE idempotency_keys DROP CONSTRAINT IF EXISTS idempotency_keys_fence,
        ADD CONSTRAINT idempotency_keys_fence CHECK (
            left(encode(sha256(convert_to(key, 'UTF8')), 'hex'), 2) = ANY ({slots}::text[])
            OR coalesce(current_setting('rocket_rides.copies_keys', true), '') = 'yes'
        ) NOT VALID
"""
COPIES_KEYS = "SET LOCAL rocket_rides.copies_keys = 'yes'"
# The slots that it names, between braces.
FENCED = r"""
    SELECT substring(pg_get_constraintdef(oid) FROM '\{([0-9a-f,]*)\}') FROM pg_constraint
    WHERE conrelid = 'idempotency_keys'::regclass AND conname = %s
"""
OUT = """
    COPY (
        SELECT key, distance, ride_id, created_at FROM idempotency_keys
        WHERE left(encode(sha256(convert_to(key, 'UTF8')), 'hex'), 2) = ANY ({slots}::text[])
    ) TO STDOUT
"""
BESIDE = "CREATE TEMPORARY TABLE moving (LIKE idempotency_keys) ON COMMIT DROP"
IN = "COPY moving (key, distance, ride_id, created_at) FROM STDIN"
# A key that is there already came with an earlier move, or with this one, before a crash.
TAKE_IN = """
    INSERT INTO idempotency_keys (key, distance, ride_id, created_at)
    SELECT key, distance, ride_id, created_at FROM moving ON CONFLICT (key) DO NOTHING
"""
RIDES_OF = """
    SELECT ride_id / %(size)s, ride_id FROM idempotency_keys
    WHERE ride_id / %(size)s = ANY(%(cells)s)
"""
LOST = """
    SELECT id FROM unnest(%s::bigint[]) AS given (id)
    WHERE NOT EXISTS (SELECT FROM rides WHERE rides.id = given.id)
"""
FORGET = "DELETE FROM idempotency_keys WHERE ride_id = ANY(%s)"
DIFFERENT = """
    SELECT moving.ride_id, here.ride_id FROM moving JOIN idempotency_keys here USING (key)
    WHERE (moving.distance, moving.ride_id, moving.created_at)
       <> (here.distance, here.ride_id, here.created_at)
      AND left(encode(sha256(convert_to(key, 'UTF8')), 'hex'), 2) = ANY (%s)
    LIMIT 1
"""


class Keys:
    """The keys of a cell, for one move at a time.

    Raises Refused while another move has them, and Refused or Unavailable unless the cell's
    database can give and take them.
    """

    def __init__(self, cell: int, url: str) -> None:
        self.cell = cell
        self._connection = database.connect(url, "router", **SESSION)
        try:
            revisions.require_schema(self._connection, cell)
            database.require_writable(self._connection)
            if not self._value(MAY_MOVE):
                raise Refused(
                    f"CELL_{cell}_DATABASE_URL's role does not own idempotency_keys, or"
                    " may not read rides or create temporary tables"
                )
            if not self._has_lock():
                raise Refused("another move is under way")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def _has_lock(self) -> bool:
        """A move that has just ended may have it for a moment, until its session is gone."""
        for _ in range(LOOKS):
            if try_lock(self._connection, Lock.MOVE):
                return True
            time.sleep(LOOK_AGAIN)
        return False

    def take_only(self, slots: Set[str], *, new: Set[str] = frozenset()) -> set[str]:
        """Have the database take the keys of these slots, as far as it did before, and of `new`.

        It refuses all others. On return, whatever was under way has its key committed, or will
        fail. Returns the slots whose keys it takes.
        """
        return self._patiently(lambda: self._take_only(slots, new), f"cell {self.cell}")

    def _take_only(self, slots: Set[str], new: Set[str]) -> set[str]:
        self._connection.execute(LOCK, prepare=False)
        fence = self._connection.execute(FENCED, [FENCE]).fetchone()
        before = {*fence[0].split(",")} if fence else {*SLOTS}
        takes = (before & slots) | new
        self._connection.execute(sql.SQL(PUT_FENCE).format(slots=sorted(takes)))
        return takes

    def copy(self, source: "Keys", slots: Set[str], owned: Set[str]) -> int:
        """Copy the keys of slots that `source` refuses, in one transaction; returns how many.

        A key that is here already stays. Raises Refused if it has another ride here while the
        source has its slot (`owned`): then only the source may have taken the key.
        """
        either = f"cell {source.cell} or cell {self.cell}"
        return self._patiently(lambda: self._copy(source, slots, owned), either)

    def _copy(self, source: "Keys", slots: Set[str], owned: Set[str]) -> int:
        self._connection.execute(BESIDE)
        out = sql.SQL(OUT).format(slots=sorted(slots))
        with (
            source._connection.cursor().copy(out) as leaving,
            self._connection.cursor().copy(IN) as coming,
        ):
            for data in leaving:
                coming.write(data)
        self._connection.execute(COPIES_KEYS)
        copied = self._connection.execute(TAKE_IN).rowcount
        if different := self._connection.execute(DIFFERENT, [sorted(owned)]).fetchone():
            raise Refused(
                f"a key has ride {different[0]} in cell {source.cell}, and ride {different[1]} in"
                f" cell {self.cell}: delete the latter from its idempotency_keys"
            )
        return copied

    def forget_lost(self, cells: Mapping[int, "Keys"]) -> None:
        """Delete the keys of rides that other cells have taken, and have lost in a restore.

        Else they would be answered with these rides, or with others that get their ids.
        """
        others = sorted(cells.keys() - {self.cell})
        rides: dict[int, list[int]] = {cell: [] for cell in others}
        for cell, ride in self._connection.execute(RIDES_OF, {"size": CELL_SIZE, "cells": others}):
            rides[cell].append(ride)
        lost: list[int] = []
        for cell in others:
            lost += [id_ for [id_] in cells[cell]._connection.execute(LOST, [rides[cell]])]
        forget = partial(self._connection.execute, FORGET, [lost])
        self._patiently(forget, f"cell {self.cell}")

    def require_session(self) -> None:
        """Raise psycopg.Error if the session was lost, and with it the lock."""
        self._connection.execute("SELECT")

    def _patiently(self, once: Callable[[], T], where: str) -> T:
        """Do it in a transaction; again, while somebody holds a lock for long in that cell."""
        said = False
        while True:
            try:
                with self._connection.transaction():
                    return once()
            except psycopg.errors.LockNotAvailable:
                if not said:
                    waits = f"{where}: waiting for a lock on idempotency_keys"
                    print(waits, file=sys.stderr, flush=True)  # noqa: T201
                said = True
                time.sleep(PAUSE)

    def _value(self, query: str) -> int:
        return int(database.one_row(self._connection.execute(query))[0])
