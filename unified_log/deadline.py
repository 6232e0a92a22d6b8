"""Deadlines on this side, for a Postgres that is frozen.

Then its own limits, such as statement_timeout, end nothing, and its kernel goes on acknowledging:
who waits for an answer would wait as long as the server is frozen.

What it guarantees: a session that waits asks over a new connection, a little after the server
should have ended the statement, or every few seconds where that would be later, what its own
process there is doing. The session is cut if nobody answers, if the server does not know it, or if
its statement is past the limit. Then its connection is closed and NoAnswer is raised: whoever opens
another one comes to the server that is there.

A commit that waits for a synchronous standby is not cut, however long it takes; nor is, while the
server answers, a statement without a limit or one that it has not read yet, as where one of its
processes alone is stopped; nor ever a wait for notifications. Through a pooler, a question may wait
for a place in a full pool, whoever is frozen: so while the pooler takes logins, no session is cut
for want of an answer.

Before the deadline this costs no round trip and no thread: half a microsecond for each wait.
"""

import asyncio
import re
import select
from contextlib import closing
from typing import NamedTuple

import psycopg
from psycopg import errors, pq
from psycopg.abc import RV, PQGen
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow
from psycopg.waiting import READY_NONE

from unified_log import unreachable

MARGIN = 0.5  # seconds that the server may be late with its own limit
EVERY = 3.0  # seconds, at most, until the server is asked, and asked again
ANSWER = 5.0  # seconds until it answers; for connecting, the session's own connect_timeout
INTERVAL = 0.1  # seconds between two looks for signals, as in psycopg

# It reads no table, so no lock delays it. Of another role's session it tells no more than the pid.
STANDING = """
    SELECT (extract(epoch FROM backend_start) * 1000000)::bigint, wait_event = 'SyncRep',
        CASE WHEN state = 'active' THEN extract(epoch FROM clock_timestamp() - state_change)::float8
        END
    FROM pg_stat_get_activity(%s)
"""
_LIMIT = re.compile(r" *(\d+(?:\.\d+)?) *(us|ms|s|min|h|d|) *")
_SECONDS = {"us": 1e-6, "": 1e-3, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


class NoAnswer(psycopg.OperationalError):
    """No answer is to be expected. What was asked, such as a commit, may have been done."""


class Backend(NamedTuple):
    """The server's process of a session, and its limit in seconds for a statement; 0 for none."""

    pid: int
    started: int | None = None  # in microseconds: another server may have the same number
    limit: float = 0

    @property
    def patience(self) -> float:
        """Seconds to wait before it is asked what it is doing."""
        return min(self.limit + MARGIN, EVERY) if self.limit else EVERY


def seconds(limit: str) -> float:
    """A time-out as Postgres reads it, such as 900ms. Raises ValueError where it is none."""
    if found := _LIMIT.fullmatch(limit):
        return float(found[1]) * _SECONDS[found[2]]
    raise ValueError(f"{limit!r} is no time-out, such as 900ms, 10s or 2min")


class Session(psycopg.Connection[TupleRow]):
    """A connection that raises NoAnswer in place of waiting for a server that is frozen."""

    backend: Backend | None = None  # not yet known while the session is being set up

    def wait(self, gen: PQGen[RV], interval: float = INTERVAL, timeout: float | None = None) -> RV:
        """Wait as psycopg does; a `timeout` is that of who waits for notifications."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        patience = self.backend.patience if self.backend else EVERY
        try:
            return super().wait(gen, interval, patience)
        except errors._WaitTimeout:
            gen = _resumed(gen)
        while True:
            if why := _why_none(self):
                _cut(self, why)
            try:
                return super().wait(gen, interval, patience)
            except errors._WaitTimeout:
                pass


class AsyncSession(psycopg.AsyncConnection[TupleRow]):
    """The same for an event loop, which goes on while the server is asked."""

    backend: Backend | None = None

    async def wait(
        self, gen: PQGen[RV], interval: float = INTERVAL, timeout: float | None = None
    ) -> RV:
        """Wait as a Session does."""
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        patience = self.backend.patience if self.backend else EVERY
        try:
            return await super().wait(gen, interval, patience)
        except errors._WaitTimeout:
            gen = _resumed(gen)
        while True:
            if why := await asyncio.to_thread(_why_none, self):
                _cut(self, why)
            try:
                return await super().wait(gen, interval, patience)
            except errors._WaitTimeout:
                pass


class _Asking(psycopg.Connection[TupleRow]):
    """A connection whose waits end after ANSWER seconds."""

    def wait(self, gen: PQGen[RV], interval: float = INTERVAL, timeout: float | None = None) -> RV:
        return super().wait(gen, interval, ANSWER if timeout is None else timeout)


def _why_none(session: Session | AsyncSession) -> str:
    """Why no answer is to be expected; empty where one may come."""
    info = session.info
    backend = session.backend or Backend(info.backend_pid)
    pooled = backend.pid != info.backend_pid  # a pooler has told us a number of its own
    logged_in = False
    # The same server, whichever of the URL's hosts that is.
    there = make_conninfo(
        info.dsn,
        password=info.password,
        application_name="deadline",
        target_session_attrs="any",
    )
    try:
        with closing(_Asking.connect(there, autocommit=True)) as asking:
            logged_in = True
            row = asking.execute(STANDING, [backend.pid], prepare=False).fetchone()
    except psycopg.Error as error:
        timed_out = isinstance(error, (errors.ConnectionTimeout, errors._WaitTimeout))
        if timed_out and logged_in and pooled:
            return ""  # the pooler is there, and its pool may be full
        if timed_out or not _is_there(there):
            return f"Postgres does not answer: {unreachable.why(error, there)}"
        return ""  # it takes no more connections
    if row is None or backend.started not in (None, row[0]):
        return "Postgres does not know this session any more"
    _, waits_for_standby, since = row
    past = bool(backend.limit and since and since > backend.limit + MARGIN)
    if past and not waits_for_standby:
        return f"Postgres has not ended a statement after its limit of {backend.limit:g} s"
    return ""


def _is_there(conninfo: str) -> bool:
    """Whether a server that refuses a connection has said so itself."""
    return pq.PGconn.ping(conninfo.encode()) in (pq.Ping.OK, pq.Ping.REJECT)


def _cut(session: Session | AsyncSession, why: str) -> None:
    """Close the connection, unless an answer has come meanwhile. Raises NoAnswer."""
    poll = select.poll()
    poll.register(session.pgconn.socket, select.POLLIN)
    if not poll.poll(0):
        session.pgconn.finish()  # else a pool would hand it out again
        raise NoAnswer(why)


def _resumed(gen: PQGen[RV]) -> PQGen[RV]:
    """The rest of a wait that has timed out: psycopg can only begin one, which sends None."""
    ready: int = READY_NONE
    try:
        while True:
            ready = (yield gen.send(ready)) or READY_NONE
    except StopIteration as end:
        rest: RV = end.value
        return rest
