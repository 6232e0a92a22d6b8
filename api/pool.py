"""A worker's connections to Postgres: few, shared, never waited for long, and never stale."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import psycopg
from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader
from psycopg_pool import ConnectionPool

from rocket_rides import database
from rocket_rides.settings import Settings

Pool = ConnectionPool[psycopg.Connection]

# Seconds, one after the other at the worst, and together less than two: a connection is waited
# for, then a lock, twice.
PATIENCE = 0.9
UNREACHABLE = "the database can't be reached"
# Nobody can hold the log up by hanging: a statement, or a transaction left open, is cut short.
SESSION = {
    "default_transaction_isolation": "serializable",
    "lock_timeout": "400ms",
    "statement_timeout": "900ms",
    "idle_in_transaction_session_timeout": "2s",
    # Young tables have no statistics, and a sequential scan would predicate-lock all of one.
    "enable_seqscan": "off",
    # Times as RFC 3339 has them: some zones have known offsets with seconds.
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
}


class Moment(TimestamptzLoader):
    """A time, or Postgres' own text for one that Python's dates don't reach, such as infinity."""

    def load(self, data: Buffer) -> datetime | str:  # type: ignore[override]
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()


def open_pool(config: Settings) -> Pool:
    """A pool that opens its connections when they are needed."""

    def configure(connection: psycopg.Connection) -> None:
        connection.adapters.register_loader("timestamptz", Moment)
        database.configure(connection, **SESSION)

    return ConnectionPool(
        config.postgres_url,
        min_size=1,
        max_size=config.api_connections,
        reconnect_timeout=PATIENCE,  # then the next request tries again
        kwargs={
            "autocommit": True,
            "application_name": "api",
            "connect_timeout": 2,
            "prepare_threshold": 0,
            **database.CONNECTION,
        },
        configure=configure,
        open=True,
    )


def get_connection(pool: Pool, deadline: float) -> psycopg.Connection:
    """Take a live connection out of the pool, for `pool.putconn`. Raises PoolTimeout.

    The pool's own `check` would pause for a second after the first stale connection; after a
    restart of the server all of them are.
    """
    while True:
        connection = pool.getconn(timeout=max(0.01, deadline - time.monotonic()))
        if database.is_alive(connection):
            return connection
        connection.close()
        pool.putconn(connection)


@contextmanager
def borrowed(pool: Pool) -> Iterator[psycopg.Connection]:
    """A live connection, for the length of a block. Raises PoolTimeout after PATIENCE."""
    connection = get_connection(pool, time.monotonic() + PATIENCE)
    try:
        yield connection
    finally:
        pool.putconn(connection)
