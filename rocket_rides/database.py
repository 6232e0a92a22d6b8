"""Sessions with Postgres. Transactions roll back unless their block completes."""

import select
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from rocket_rides.errors import Unavailable, in_one_line
from rocket_rides.settings import PROJECT

Row = TypeVar("Row")

# The name of the newest migration is the schema that this code was written for.
NEWEST_REVISION = max(path.name for path in Path(PROJECT, "migrations/versions").glob("[0-9]*.py"))
REVISION = NEWEST_REVISION.split("_")[0]

NEWER = (
    f"the database's schema is {{}}, newer than this code, which needs {REVISION};"
    " install the newer code"
)

CURRENT_REVISION = "SELECT version_num FROM alembic_version"

# Until the first draw, last_value is the number that it will give.
LAST_DRAWN = "SELECT last_value - (NOT is_called)::int FROM log_position"

# For sessions in which an index serves every statement: a new table has no statistics, so the
# planner would scan it.
INDEX_SCANS = {"enable_seqscan": "off", "enable_bitmapscan": "off"}

# Options of every connection, whatever its URL or the environment say. Text is in UTF-8: a database
# in SQL_ASCII would send bytes. A server that vanishes silently is noticed after about ten seconds.
CONNECTION = {
    "client_encoding": "utf8",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


def connect(
    url: str, name: str, kind: type[psycopg.Connection] = psycopg.Connection, /, **session: str
) -> psycopg.Connection:
    """Open an autocommit connection with `session` settings such as lock_timeout="1s".

    Transactions are opened where they are needed, with `connection.transaction()`. pg_stat_activity
    shows `name`. Raises Unavailable when the server can't be reached.
    """
    options: dict[str, Any] = {"application_name": name, "connect_timeout": 5, **CONNECTION}
    try:
        connection = kind.connect(url, autocommit=True, prepare_threshold=0, **options)
    except psycopg.OperationalError as error:
        reason = in_one_line(error).rpartition("failed: ")[2].partition(" Is the server")[0]
        raise Unavailable(f"Postgres can't be reached: {reason}") from None
    try:
        configure(connection, **session)
    except psycopg.Error:
        connection.close()
        raise
    return connection


def configure(connection: psycopg.Connection, **session: str) -> None:
    """Set session settings, in one round trip."""
    names = list(session)
    connection.execute(
        "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) s(name, value)",
        [names, [session[name] for name in names]],
        prepare=False,
    )


def one_row(cursor: psycopg.Cursor[Row]) -> Row:
    """Fetch the row of a statement that always returns one, such as an aggregate."""
    row = cursor.fetchone()
    if row is None:
        raise LookupError("a statement that always returns a row returned none")
    return row


def require_current_schema(connection: psycopg.Connection) -> None:
    """Raise Unavailable unless the database has the schema that this code needs."""
    try:
        row = connection.execute(CURRENT_REVISION, prepare=False).fetchone()
    except psycopg.errors.UndefinedTable:
        row = None
    revision = row[0] if row else "empty"
    if row and is_newer(revision):
        raise Unavailable(NEWER.format(revision))
    if revision != REVISION:
        raise Unavailable(
            f"the database's schema is {revision}, not {REVISION};"
            " run python -m migrations to upgrade it"
        )


def is_newer(revision: str) -> bool:
    """Whether this revision of the schema is unknown to this code."""
    return revision > REVISION


def refusal(error: psycopg.Error) -> str:
    """What the server said, or else psycopg, in one line without hint and context."""
    return " ".join((error.diag.message_primary or "").split()) or in_one_line(error)


def is_alive(connection: psycopg.Connection) -> bool:
    """Whether an idle connection is still open on the server's side. Costs no round trip.

    An idle connection has nothing to read; after the server went away it has an end-of-file.
    """
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)
