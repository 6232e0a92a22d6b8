"""Sessions with Postgres. Transactions roll back unless their block completes."""

import secrets
import select
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from unified_log import session_settings, unreachable
from unified_log.deadline import AsyncSession, Backend, Session, seconds
from unified_log.errors import Refused, Unavailable, advice, in_one_line

Row = TypeVar("Row")

NOT_IN_THE_SCHEMA = (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction)

# Until the first draw, last_value is the number that it will give.
LAST_DRAWN = "SELECT last_value - (NOT is_called)::int FROM log_position"

UNREACHABLE = "Postgres can't be reached"
NOWHERE = "search_path names no schema that exists, or none that this role may use"
READ_ONLY = (
    "the database is read-only: it is a standby, or has default_transaction_read_only;"
    " connect to the primary, or set that to off"
)
POOLED = (
    "DATABASE_URL leads to a pooler in transaction mode, in which a session loses its locks,"
    " settings and notifications; set the pooler to session mode, or connect to the server itself"
)
IN_RECOVERY = "SELECT pg_is_in_recovery()"
LISTEN = "LISTEN {}"
NOTIFY = "SELECT pg_notify(%s, '')"
ARRIVES = 5.0  # seconds that a notification may take on a busy machine


def connect(url: str, name: str, kind: type[Session] = Session, /, **session: str) -> Session:
    """Open an autocommit connection with `session` settings such as lock_timeout="1s".

    They are added to what every session has (`unified_log.session_settings`). Transactions are
    opened where they are needed, with `connection.transaction()`. pg_stat_activity shows `name`.
    Raises Unavailable when the server can't be reached, and Refused as `configure` does.
    """
    try:
        connection = kind.connect(url, **_options(name))
        try:
            configure(connection, **session)
        except BaseException:
            connection.close()
            raise
    except psycopg.OperationalError as error:
        raise Unavailable(f"{UNREACHABLE}: {unreachable.why(error, url)}") from None
    return connection


async def connect_async(url: str, name: str, **session: str) -> AsyncSession:
    """The same for an event loop. Raises Unavailable; only `connect` looks for a pooler."""
    try:
        connection = await AsyncSession.connect(  # noqa: TID251 (configured below)
            url, **_options(name)
        )
        try:
            setting = session_settings.statement(session).encode()
            cursor = await connection.execute(setting, prepare=False)
            connection.backend = _backend(await cursor.fetchone(), session)
        except BaseException:
            await connection.close()
            raise
    except psycopg.OperationalError as error:
        raise Unavailable(f"{UNREACHABLE}: {unreachable.why(error, url)}") from None
    return connection


def _options(name: str) -> dict[str, Any]:
    return {
        "autocommit": True,
        "prepare_threshold": 1,  # at 0, psycopg would forget what it prepared and could not run
        "application_name": name,
        "connect_timeout": 5,
        **session_settings.CONNECTION,
    }


def configure(connection: psycopg.Connection, **session: str) -> None:
    """Set what every session has, and `session`, in one round trip; a Session gets its deadline.

    Raises Refused when the connection leads to a pooler in transaction mode.
    """
    setting = session_settings.statement(session).encode()
    backend = _backend(connection.execute(setting, prepare=False).fetchone(), session)
    if isinstance(connection, Session):
        connection.backend = backend
    if backend.pid == connection.info.backend_pid:  # else a pooler has told us a number of its own
        return
    if one_row(connection.execute(IN_RECOVERY, prepare=False))[0]:
        return  # nobody can listen on a standby, nor hold a lock that matters
    _require_sessions_of_our_own(
        make_conninfo(connection.info.dsn, password=connection.info.password)
    )


def _backend(row: Any, session: Mapping[str, str]) -> Backend:
    """From what the statement of the settings returns."""
    return Backend(row[0], row[1], seconds(session.get("statement_timeout", "0")))


@cache
def _require_sessions_of_our_own(conninfo: str) -> None:
    """Raise Refused unless a session keeps its backend between its statements.

    Then a notification reaches it while it asks for nothing. In transaction mode that comes to the
    backend that listens, which is another session's by now, or nobody's.
    """
    channel = f"unified_log_{secrets.token_hex(8)}"
    connect = partial(Session.connect, conninfo, autocommit=True, connect_timeout=5)  # noqa: TID251
    with connect() as one, connect() as other:
        one.execute(sql.SQL(LISTEN).format(sql.Identifier(channel)), prepare=False)
        taken = list[psycopg.Notify]()
        other.add_notify_handler(taken.append)
        other.execute(NOTIFY, [channel], prepare=False)
        if taken or not [*one.notifies(timeout=ARRIVES, stop_after=1)]:
            raise Refused(POOLED)


def one_row(cursor: psycopg.Cursor[Row]) -> Row:
    """Fetch the row of a statement that always returns one, such as an aggregate."""
    row = cursor.fetchone()
    if row is None:
        raise LookupError("a statement that always returns a row returned none")
    return row


def require_writable(connection: psycopg.Connection) -> None:
    """Raise Unavailable unless this session may write."""
    if one_row(connection.execute("SHOW transaction_read_only", prepare=False))[0] == "on":
        raise Unavailable(READ_ONLY)


def why(error: psycopg.Error | Unavailable, not_in_the_schema: str = "") -> str:
    """What the server said, or else the error, in one line without hint and context.

    It ends with advice where that is known; `not_in_the_schema` is the advice where a table, a
    column or a function is missing.
    """
    told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    said = " ".join((told or "").split()) or in_one_line(error)
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return READ_ONLY
    if advice(error):
        otherwise = f"; otherwise {not_in_the_schema}" if not_in_the_schema else ""
        return f"{in_one_line(error)}{otherwise}"
    if not_in_the_schema and isinstance(error, NOT_IN_THE_SCHEMA):
        return f"{said}: {not_in_the_schema}"
    if isinstance(error, errors.InvalidSchemaName):
        return f"{said}: set search_path to a schema that exists"
    return said


def in_its_letters(connection: "psycopg.Connection[Any]", text: str) -> str:
    """A text for a person as the database can keep it: in ASCII where that is not in Unicode."""
    if connection.info.parameter_status("server_encoding") == "UTF8":
        return text
    return text.encode("ascii", "backslashreplace").decode()


def is_alive(connection: psycopg.Connection) -> bool:
    """Whether an idle connection is still open on the server's side. Costs no round trip.

    An idle connection has nothing to read; after the server went away it has an end-of-file.
    """
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return not poll.poll(0)
