"""Who is in a migration's way, by name, and how often that is told."""

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import psycopg

from rocket_rides.revisions import APPLICATION
from unified_log import database
from unified_log.schema.serving import Component
from unified_log.words import escaped

# What comes behind a lock that a migration waits for, such as a POST, waits as long as that.
LOCK_TIMEOUT = "300ms"
LOOK_EVERY = 0.05  # seconds
TELL_EVERY = 3.0  # seconds, at most
TELL_AGAIN = 60.0  # seconds, if it is still the same
LASTING = re.compile(r" for \d+ s")  # which is all that changes of who stays in the way
MOST = 5  # names in a line

# Of a session that waits for a lock: who holds it, or waits for it first. Of another role's session
# only who is in pg_read_all_stats learns more than the name.
BLOCKERS = """
    SELECT pid, application_name, coalesce(
        ', in a transaction for ' || round(extract(epoch FROM clock_timestamp() - xact_start))
        || ' s: ' || left(query, 60), '')
    FROM pg_stat_activity
    WHERE pid = ANY (pg_blocking_pids(%s)) ORDER BY xact_start NULLS LAST
"""
# Sessions of older code, which hold its lock (`unified_log.schema.serving`); a pool's are one line.
# This session may hold some of these locks itself by now.
OLDER = """
    SELECT application_name, objid::integer,
           CASE count(*) WHEN 1 THEN 'pid ' || min(pid) ELSE count(*) || ' sessions' END,
           coalesce(', at ' || host(client_addr), '')
           || coalesce(to_char(min(backend_start), '", since "HH24:MI:SS" UTC"'), '')
    FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %s AND objid::integer < %s
      AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND pid <> pg_backend_pid()
    GROUP BY application_name, objid, client_addr ORDER BY min(backend_start)
"""
EXCLUDE = """
    SELECT bool_and(pg_try_advisory_xact_lock(%s, each)) FROM generate_series(1, %s - 1) each
"""
NO_LOCK = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


class InTheWay(Exception):
    """Another session keeps the migration from going on; the message says which."""


def exclude_older(
    session: psycopg.Connection, serves_from: int, component: Component = APPLICATION
) -> None:
    """Keep code before `serves_from` out, until the transaction's end. Raises InTheWay.

    A revision that ends the service of older code of the library calls it for that one.
    """
    [alone] = database.one_row(session.execute(EXCLUDE, [component.lock, serves_from]))
    if alone:
        return
    older = session.execute(OLDER, [component.lock, serves_from])
    found = [
        f"{name} ({sessions}, of {component.number(revision)}{place})"
        for name, revision, sessions, place in older
    ]
    raise InTheWay(
        f"processes that are older than {component.number(serves_from)} have to end: "
        + _listed(found)
    )


class Blockers:
    """Looks who blocks a session while it waits, on a connection and in a thread of its own."""

    def __init__(self, url: str, pid: int) -> None:
        self._pid = pid
        self._connection = database.connect(url, "migrations (looking)", statement_timeout="1s")
        self._ended = Event()
        self._thread = Thread(target=self._look, daemon=True)
        self.seen: list[str] = []  # when it last waited

    def __enter__(self) -> "Blockers":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._connection.close()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_EVERY):
            try:
                blockers = self._connection.execute(BLOCKERS, [self._pid]).fetchall()
                seen = [f"{name} (pid {pid}{doing})" for pid, name, doing in blockers]
            except psycopg.Error:
                return  # then nobody is named
            self.seen = seen or self.seen


@contextmanager
def naming(url: str, session: psycopg.Connection) -> Iterator[None]:
    """Raise InTheWay, with names, where a statement in the block waited too long for a lock."""
    [pid] = database.one_row(session.execute("SELECT pg_backend_pid()"))
    with Blockers(url, pid) as blockers:
        try:
            yield
        except Exception as error:
            reason = getattr(error, "orig", None) or error  # SQLAlchemy's is around it
            if isinstance(reason, NO_LOCK):
                raise InTheWay(f"a lock is held by {_listed(blockers.seen)}") from None
            raise


def _listed(names: list[str]) -> str:
    more = [f"and {len(names) - MOST} more"] if len(names) > MOST else []
    return ", ".join([*names[:MOST], *more]) or "another session"


class Reasons:
    """Tells why a revision waits: at once, once that changes, and else every minute."""

    def __init__(self, logger: logging.Logger, revision: str) -> None:
        self._logger, self._revision = logger, revision
        self._told, self._at = "", 0.0

    def __call__(self, reason: str) -> None:
        who = LASTING.sub("", reason)
        pause = TELL_AGAIN if who == self._told else TELL_EVERY
        if not self._told or time.monotonic() >= self._at + pause:
            self._told, self._at = who, time.monotonic()
            self._logger.warning("%s waits: %s", self._revision, escaped(" ".join(reason.split())))
