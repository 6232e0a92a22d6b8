"""Sessions with Postgres. Transactions roll back unless their block ends well."""

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
    f"the database's schema is {{}}, newer than this code, which was written for {REVISION};"
    " install the newer code"
)

CURRENT_REVISION = "SELECT version_num FROM alembic_version"

# Until the first draw, last_value is the number that it will give.
LAST_DRAWN = "SELECT last_value - (NOT is_called)::int FROM log_position"

# For sessions whose statements each have their index: a young table has no statistics, and the
# planner would scan all of it.
INDEX_SCANS = {"enable_seqscan": "off", "enable_bitmapscan": "off"}

# What every connection asks for, whatever its URL or the environment say. Text is in UTF-8: from a
# database in SQL_ASCII it would come as bytes. A server that is gone without a word is noticed
# after about ten seconds.
CONNECTION = {
    "client_encoding": "utf8",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


def connect(url: str, name: str, **session: str) -> psycopg.Connection:
    """Open an autocommit connection, with `session` settings such as lock_timeout="1s".

    Transactions are opened where they are needed, with `connection.transaction()`. `name` is
    what pg_stat_activity shows. Raises Unavailable when the server can't be reached.
    """
    options: dict[str, Any] = {"application_name": name, "connect_timeout": 5, **CONNECTION}
    try:
        connection = psycopg.connect(url, autocommit=True, prepare_threshold=0, **options)
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
    """The row of a statement that gives one whatever the tables hold, such as an aggregate's."""
    row = cursor.fetchone()
    if row is None:
        raise LookupError("a statement that always gives a row gave none")
    return row


def require_current_schema(connection: psycopg.Connection) -> None:
    """Raise Unavailable when the database is not at this code's schema."""
    try:
        row = connection.execute(CURRENT_REVISION, prepare=False).fetchone()
    except psycopg.errors.UndefinedTable:
        row = None
    found = row[0] if row else "empty"
    if row and is_newer(found):
        raise Unavailable(NEWER.format(found))
    if found != REVISION:
        raise Unavailable(
            f"the database's schema is {found}, not {REVISION}; python -m migrations brings it up"
        )


def is_newer(revision: str) -> bool:
    """Whether this is a schema that this code has yet to hear of."""
    return revision > REVISION


def refusal(error: psycopg.Error) -> str:
    """What the server said, or else psycopg: one line, without hint and context."""
    return " ".join((error.diag.message_primary or "").split()) or in_one_line(error)


def is_alive(connection: psycopg.Connection) -> bool:
    """Whether the server still holds an idle connection. Costs no trip.

    An idle connection has nothing to read; one whose server went away has an end-of-file.
    """
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)
