"""A worker's connections to Postgres: few, shared, and never stale.

They are in autocommit mode, and their sessions are SERIALIZABLE by default: so a statement is a
transaction by itself, in one round trip, without BEGIN and COMMIT.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from threading import BoundedSemaphore
from typing import Any, cast

import psycopg
from psycopg import errors
from psycopg.abc import Buffer
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.datetime import TimestamptzLoader
from sqlalchemy import Connection, create_engine, event, exc  # noqa: TID251 (_prepare sets sessions up)
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from rocket_rides import revisions, sessions
from rocket_rides.settings import Settings
from unified_log import database, session_settings, unreachable
from unified_log.deadline import NoAnswer, Session
from unified_log.errors import Unavailable, in_one_line
from unified_log.schema.serving import NotServed
from unified_log.waiting import STARTING_UP, LimitedWarning, delays

# Seconds. At worst a request waits this long for a connection, and then for two statements
# (statement_timeout): less than three seconds in all, unless it has to open the connection.
PATIENCE = 0.9
LONGEST_OPENING = 2  # seconds, for each address of the URL's hosts: libpq's least
LONGEST_LIFE = 3600  # seconds: then a session finds a server that DNS, or a balancer, has replaced
# Seconds, before another look for a session that somebody gives back.
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.1
UNREACHABLE = "the database can't be reached"
ALL_IN_USE = "all connections to the database are in use"
# Nothing that hangs can hold up the log: statements and open transactions are cut short.
SESSION = {
    "default_transaction_isolation": "serializable",
    "lock_timeout": "400ms",
    "statement_timeout": "900ms",
    "idle_in_transaction_session_timeout": "2s",
    # Or else Postgres refuses each INSERT into a table with a policy.
    "row_security": "on",
    # New tables have no statistics. A sequential scan would predicate-lock a whole table, and a
    # bitmap scan reads all the rows that a LIMIT would leave out.
    **session_settings.INDEX_SCANS,
}
# The server's function that gives notice when the wait for a synchronous standby was cancelled:
# then the commit may be on this server only. Also its key in a connection's `info`.
NOT_REPLICATED = "SyncRepWaitForLSN"
# What a session says again and again, where a new one may not: its server became a standby, or a
# prepared statement's columns have other types now. It is replaced after its use, unless it is new.
OUTDATED = (errors.ReadOnlySqlTransaction, errors.FeatureNotSupported)
NEW = 1.0  # seconds


class NoConnection(Exception):
    """There is no connection to be had now.

    The message is UNREACHABLE, ALL_IN_USE, or that the schema does not serve this code any more.
    """


class Database:
    """An engine, and why its last attempt to open a connection failed."""

    def __init__(self, config: Settings, patience: float = STARTING_UP) -> None:
        """Opens nothing yet. Says in the log why nothing can be opened, after so many seconds."""
        self._url, self._cell = config.postgres_url, config.cell
        self._warn = LimitedWarning(patience)
        self.why_unreachable = ""  # empty: the last attempt succeeded, or there was none
        self.engine = create_engine(
            "postgresql+psycopg://",
            connect_args={
                **conninfo_to_dict(config.postgres_url),  # every kind of URL that libpq knows
                "autocommit": True,
                "application_name": sessions.API,
                "connect_timeout": LONGEST_OPENING,
                "prepare_threshold": 1,  # as in `unified_log.database`
                **session_settings.CONNECTION,
            },
            isolation_level="AUTOCOMMIT",
            pool_size=config.api_connections,
            max_overflow=0,
            pool_recycle=LONGEST_LIFE,
            pool_reset_on_return=None,  # in autocommit mode there is nothing to roll back
            skip_autocommit_rollback=True,
            use_native_hstore=False,
            hide_parameters=True,
        )
        event.listen(self.engine, "do_connect", _open_session)
        # Before SQLAlchemy's own first look at the server, which is a statement, too.
        event.listen(self.engine, "connect", self._prepare, insert=True)
        event.listen(self.engine, "checkout", _require_live)
        event.listen(self.engine, "handle_error", self._note)
        # Here a request waits its turn, and not in the engine's pool: that knows one time limit for
        # all, and does not wake who waits when a session could not be opened.
        self._turns = BoundedSemaphore(config.api_connections)
        self._pool = cast(QueuePool, self.engine.pool)

    @contextmanager
    def connect(self, deadline: float | None = None) -> Iterator[Connection]:
        """A live connection, for the duration of a block; waits for PATIENCE, or to the `deadline`.

        That is a time of time.monotonic(). Raises NoConnection.
        """
        if deadline is None:
            deadline = time.monotonic() + PATIENCE
        if not self._turns.acquire(timeout=max(0, deadline - time.monotonic())):
            raise NoConnection(UNREACHABLE if self.why_unreachable else ALL_IN_USE)
        try:
            with self._open(deadline) as connection:
                try:
                    yield connection
                finally:
                    if not connection.invalidated and "outdated" in connection.info:
                        connection.invalidate()
        finally:
            self._turns.release()

    def _open(self, deadline: float) -> Connection:
        pauses = delays(FIRST_PAUSE, LONGEST_PAUSE)
        for again in count():
            in_use, said = self._pool.checkedout(), UNREACHABLE
            try:
                connection = self.engine.connect()
                self.why_unreachable = ""
                return connection
            except exc.DBAPIError as error:
                self.why_unreachable = unreachable.why(cause(error), self._url)
                reason = f"{database.UNREACHABLE}: {self.why_unreachable}"
            # Another cell's, or behind a pooler; or the server closes whatever it has opened.
            except (Unavailable, exc.InvalidRequestError) as error:
                self.why_unreachable = reason = in_one_line(error)
                if isinstance(error, NotServed):
                    said = reason
            # The server may take no more sessions of ours than others use, or have just opened; and
            # this may have been one of several that are gone, in a pool that has live ones, too.
            others = self._pool.checkedin()
            pause = next(pauses) if again >= others else 0
            if (again > others and not in_use) or time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
        self._warn(reason)
        raise NoConnection(said)

    def _note(self, context: ExceptionContext) -> None:
        """A session that was lost says nothing of the others: each is looked at before it is used.

        But where the server does not answer one, the others are replaced before they wait, too.
        """
        error = context.original_exception
        context.invalidate_pool_on_disconnect = isinstance(error, NoAnswer)
        if isinstance(error, NoAnswer):
            self._warn(in_one_line(error))
        if context.connection and isinstance(error, OUTDATED):
            about = context.connection.info
            if time.monotonic() - about["opened"] > NEW:
                about["outdated"] = True

    def _prepare(self, session: Session, entry: ConnectionPoolEntry) -> None:
        """Set a new session up. Raises psycopg.Error, Refused or NotServed."""
        about = entry.info
        about["opened"] = time.monotonic()

        def heed(notice: psycopg.errors.Diagnostic) -> None:
            if notice.source_function == NOT_REPLICATED:
                about[NOT_REPLICATED] = True

        session.adapters.register_loader("timestamptz", MomentLoader)
        database.configure(session, **SESSION)
        revisions.require_served(session)
        revisions.require_cell(session, self._cell)
        session.add_notice_handler(heed)


@contextmanager
def committed(connection: Connection) -> Iterator[None]:
    """A transaction that is READ COMMITTED: for who reads what others write, in one statement.

    It has no conflict with them, nor they with it.
    """
    connection.execution_options(isolation_level="READ COMMITTED")
    with connection.begin():
        yield


class MomentLoader(TimestamptzLoader):
    """A time, or Postgres' own text for one beyond Python's range, such as infinity."""

    def load(self, data: Buffer) -> datetime | str:  # type: ignore[override]
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


def cause(error: exc.DBAPIError) -> psycopg.Error:
    """What psycopg raised: with the SQLSTATE, and what else the server said."""
    return cast(psycopg.Error, error.orig)


def driver(connection: Connection) -> psycopg.Connection:
    """The connection as psycopg knows it."""
    return cast(psycopg.Connection, connection.connection.driver_connection)


def _open_session(
    _dialect: object, _entry: object, given: list[Any], named: dict[str, Any]
) -> Session:
    """In place of psycopg's own connections, those that have a deadline."""
    return Session.connect(*given, **named)  # noqa: TID251 (_prepare sets it up)


def _require_live(session: psycopg.Connection, *_: object) -> None:
    """Have the pool open another one instead of one that the server has closed."""
    if not database.is_alive(session):
        raise exc.DisconnectionError
