"""A worker's connections to Postgres: few, shared, never stale, and never a long wait."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar, Self

import psycopg
from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader
from psycopg_pool import ConnectionPool, PoolTimeout  # noqa: TID251 (its sessions: see below)

from api.prepared import heed_notices
from rocket_rides import revisions, sessions
from rocket_rides.settings import Settings
from unified_log import database, session_settings

# Seconds. At worst a request waits this long for a connection, and then for a lock in each of two
# statements (lock_timeout): less than two seconds in all.
PATIENCE = 0.9
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


class Session(psycopg.Connection):
    """A connection of this process's pool. The class knows why there may be none."""

    lent: ClassVar[set[Self]] = set()
    could_not_open: ClassVar[bool] = False  # the last attempt failed

    @classmethod
    def connect(cls, *given: Any, **options: Any) -> Self:
        """Open one, and note whether that worked."""
        try:
            opened = super().connect(*given, **options)
        except psycopg.Error:
            cls.could_not_open = True
            raise
        cls.could_not_open = False
        return opened


Pool = ConnectionPool[Session]


class Moment(TimestamptzLoader):
    """A time, or Postgres' own text for one beyond Python's range, such as infinity."""

    def load(self, data: Buffer) -> datetime | str:  # type: ignore[override]
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


def open_pool(config: Settings) -> Pool:
    """A pool that opens its connections as they are needed."""

    def configure(connection: Session) -> None:
        connection.adapters.register_loader("timestamptz", Moment)
        database.configure(connection, **SESSION)
        revisions.require_cell(connection, config.cell)
        heed_notices(connection)

    return ConnectionPool(
        config.postgres_url,
        connection_class=Session,
        min_size=1,
        max_size=config.api_connections,
        reconnect_timeout=PATIENCE,  # then the next request tries again
        kwargs={
            "autocommit": True,
            "application_name": sessions.API,
            "connect_timeout": 2,
            "prepare_threshold": 0,
            **session_settings.CONNECTION,
        },
        configure=configure,
        open=True,
    )


def get_connection(pool: Pool, deadline: float) -> Session:
    """Take a live connection, to be returned with `give_back`.

    Raises PoolTimeout after `deadline`, which is on the monotonic clock; its message is UNREACHABLE
    or ALL_IN_USE.

    The pool's own `check` would pause for a second after the first stale connection; after a
    restart of the server all of them are stale.
    """
    while True:
        try:
            connection = pool.getconn(timeout=max(0.01, deadline - time.monotonic()))
        except PoolTimeout:
            is_busy = Session.lent and not Session.could_not_open
            raise PoolTimeout(ALL_IN_USE if is_busy else UNREACHABLE) from None
        if database.is_alive(connection):
            Session.lent.add(connection)
            return connection
        connection.close()
        pool.putconn(connection)


def give_back(pool: Pool, connection: Session) -> None:
    """Return a connection that was taken with `get_connection`."""
    Session.lent.discard(connection)
    pool.putconn(connection)


@contextmanager
def borrowed(pool: Pool) -> Iterator[psycopg.Connection]:
    """A live connection, for the duration of a block. Raises PoolTimeout after PATIENCE."""
    connection = get_connection(pool, time.monotonic() + PATIENCE)
    try:
        yield connection
    finally:
        give_back(pool, connection)
