"""What Postgres says, in one statement: `facts.sql`.

Rights that it needs in Postgres: CONNECT, USAGE of the schema, and SELECT on all of its tables.
pg_read_all_stats, which shows when a session was last active, tells a process that hangs from one
that works; without it, every session counts as working.
"""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import psycopg
from psycopg.abc import RV, PQGen

from rocket_rides import revisions
from rocket_rides.sessions import ROLLUP
from unified_log import database, session_settings, sessions
from unified_log.deadline import Session
from unified_log.errors import Unavailable, in_one_line
from unified_log.terms import StateLost
from watch.facts import MOST, NO_ANSWER, Database, Reader
from watch.kept import AnyKept

FACTS = Path(__file__).with_name("facts.sql").read_text()
TIMEOUT = 0.6  # seconds
TURN = 2.0  # seconds for each host of the URL to let us in: the least that libpq knows
# An index serves every part of the statement, whatever the planner expects of tables without
# statistics. It is planned once, since planning takes longer than the statement itself.
SESSION = {
    **session_settings.NESTED_LOOPS,
    "plan_cache_mode": "force_generic_plan",
    "max_parallel_workers_per_gather": "0",
    "default_transaction_read_only": "on",
    "row_security": "on",  # a policy must not keep a person from seeing anything at all
    "statement_timeout": f"{TIMEOUT * 1000:.0f}ms",
}


class Impatient(Session):
    """A connection that waits for an answer for TIMEOUT seconds at most, even if none can come."""

    @classmethod
    def connect(cls, *given: Any, **options: Any) -> Self:
        """Open one: no host holds up the next one for longer than its TURN."""
        return super().connect(*given, **options | {"connect_timeout": int(TURN)})

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait as psycopg does, but with the time-out, which psycopg itself never sets."""
        return super().wait(gen, interval, TIMEOUT if timeout is None else timeout)


class Said(msgspec.Struct):
    """What Postgres says: the document that the statement returns."""

    database: Database
    at: datetime  # by Postgres' clock
    generation: str  # whose Ick has the rollup's dirty minutes; empty before its first lead
    sessions: dict[str, int]  # at work, by their names
    silent: dict[str, int]  # likewise, of those that hang
    kept: list[AnyKept]


_decode = msgspec.json.Decoder(Said).decode


class AskingPostgres:
    """Asks on one connection, which is opened anew after it was lost. Used by one thread."""

    def __init__(self, url: str, cell: int | None = None) -> None:
        self._url = url
        self._cell = cell
        self._connection: psycopg.Connection | None = None

    def _connected(self) -> psycopg.Connection:
        """The connection, which is opened unless it lives. Raises psycopg.Error or Unavailable."""
        if self._connection and database.is_alive(self._connection):
            return self._connection
        self.close()
        connection = database.connect(self._url, "watch", Impatient, **SESSION)
        try:
            revisions.require_schema(connection, self._cell)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def ask(self) -> Said:
        """The facts.

        Raises psycopg.Error, Unavailable, or msgspec.ValidationError where a row was tampered with.
        """
        try:
            document = database.one_row(self._connected().execute(FACTS, {"limit": MOST}))[0]
        except psycopg.Error:
            self.close()
            raise
        try:
            said = _decode(document)
        except msgspec.ValidationError as error:
            if "$.database.rides" in str(error):  # the statement found no row to tell of
                raise StateLost from None
            raise
        said.database = _completed(said)
        return said

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None


def _completed(said: Said) -> Database:
    """The facts with each reader's processes, and with what happened in words."""
    return replace(
        said.database,
        readers=tuple(_with_processes(reader, said) for reader in said.database.readers),
        happened=tuple(kept.happened() for kept in said.kept),
    )


def _with_processes(reader: Reader, said: Said) -> Reader:
    if reader.kind == "rollup":
        return replace(reader, processes=said.sessions.get(ROLLUP, 0))
    if reader.kind == "total" or reader.types:
        name = sessions.reader(reader.kind, reader.name)
        count, silent = said.sessions.get(name, 0), said.silent.get(name, 0)
        return replace(reader, processes=count, silent_processes=silent)
    return reader


def reason(error: Exception) -> str:
    """Why Postgres can't be used, in one line."""
    # One that came while the session was being opened is the context of what is said of that.
    cause = error.__context__ if isinstance(error, Unavailable) else error
    if isinstance(cause, (psycopg.errors.QueryCanceled, psycopg.errors._WaitTimeout)):
        return NO_ANSWER
    if isinstance(error, psycopg.Error):
        return revisions.refusal(error)
    return in_one_line(error).removeprefix(f"{database.UNREACHABLE}: ")
