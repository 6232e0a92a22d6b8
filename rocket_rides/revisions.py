"""The application's schema: its revisions, as Alembic counts them, and which this code needs."""

from functools import cache
from hashlib import sha256

import psycopg
from psycopg import errors

from rocket_rides.cells import CELL_SIZE
from rocket_rides.locks import Lock
from rocket_rides.settings import PROJECT
from unified_log import database
from unified_log.database import one_row
from unified_log.errors import Refused, Unavailable
from unified_log.schema import LOG, serving
from unified_log.schema.serving import Component, NoSchema, NotServed

FOLDER = PROJECT / "migrations/versions"


def number(name: str) -> int:
    """The revision of a file, such as 10 of "0010_rides.sql"."""
    return int(name.split("_")[0])


# The newest revision is the schema that this code was written for.
REVISIONS = sorted(number(path.name) for path in FOLDER.glob("[0-9]*.py"))
REVISION = REVISIONS[-1]


@cache
def digest(revision: int = REVISION) -> str:
    """Of all that makes the schema of this revision: its own files, and those before them."""
    found = sha256()
    for path in sorted(FOLDER.glob("[0-9]*")):
        if path.suffix in {".py", ".sql"} and number(path.name) <= revision:
            found.update(f"{path.name}\0{path.read_text()}\0".encode())  # whatever ends its lines
    return found.hexdigest()


UPGRADE = "run python -m migrations to upgrade it"
APPLICATION = Component(
    name="rocket_rides",
    schema="the database's schema",
    revision=REVISION,
    digest=digest(),
    lock=Lock.CODE,
    absent=f"the database's schema is empty, not {REVISION:04}; {UPGRADE}",
    upgrade=UPGRADE,
    digits=4,
    rights="python -m migrations.rights gives each role its rights",
)
MAYBE_ANOTHER = f"if the database's schema is older than {REVISION:04}, {UPGRADE}"
# Before 0010 there was no `schema_versions`, and while 0010 was being written it was another table.
EARLIER = (
    "the database's schema is of an earlier design, which this code can't upgrade:"
    " CHANGELOG.md says how to begin anew"
)
IS_EARLIER = "SELECT to_regclass('alembic_version') IS NOT NULL"

CELL = "SELECT cell_start() / %s::bigint"


def require_schema(connection: psycopg.Connection, cell: int | None = None) -> None:
    """Raise Unavailable unless the database serves this code, and from now on keep it so.

    Migrations that would end that wait for this session. Raises Refused as `require_cell` does.
    """
    serving.hold(connection, APPLICATION, LOG)
    check_schema(connection, cell)


def require_served(connection: psycopg.Connection) -> None:
    """Hold this session as `require_schema` does. Raises NotServed, but for no other reason.

    Where the schema is missing or older, each statement says so, once it meets it.
    """
    serving.hold(connection, APPLICATION, LOG)
    try:
        check_schema(connection)
    except NotServed:
        raise
    except Unavailable:
        pass


def check_schema(connection: psycopg.Connection, cell: int | None = None) -> None:
    """The same for a session that is held already, or that only looks."""
    try:
        serving.check(connection, APPLICATION, LOG)
    except NoSchema:
        if one_row(connection.execute(IS_EARLIER, prepare=False))[0]:
            raise Unavailable(EARLIER) from None
        raise
    require_cell(connection, cell)


def require_cell(connection: psycopg.Connection, cell: int | None) -> None:
    """Raise Refused if the database is another cell than the one that this process was told.

    A process that was told none, or a database without the schema, is not refused.
    """
    if cell is None:
        return
    try:
        [found] = one_row(connection.execute(CELL, [CELL_SIZE], prepare=False))
    except errors.UndefinedFunction:
        return
    if found != cell:
        raise Refused(
            f"CELL={cell} is refused: the database is cell {found}, which can't be changed"
        )


def refusal(error: psycopg.Error) -> str:
    """What the server said, in one line, with advice where the schema may be another one."""
    return database.why(error, MAYBE_ANOTHER)
