"""The revision of the database's schema, as Alembic counts it, and which one this code needs."""

import psycopg
from psycopg import errors

from rocket_rides.cells import CELL_SIZE
from rocket_rides.settings import PROJECT
from unified_log import database
from unified_log.database import NOWHERE, one_row
from unified_log.errors import Refused, Unavailable

# The newest revision is the schema that this code was written for.
REVISIONS = [path.name.split("_")[0] for path in PROJECT.glob("migrations/versions/[0-9]*.py")]
REVISION = max(REVISIONS)

UPGRADE = "run python -m migrations to upgrade it"
MAYBE_ANOTHER = f"if the database's schema is not {REVISION}, {UPGRADE}"

# The revision, and whether it is this design's: earlier schemas of this number have no `standings`.
CURRENT_REVISION = """
    SELECT version_num, to_regprocedure('standings(bigint)') IS NOT NULL FROM alembic_version
"""

CELL = "SELECT cell_start() / %s::bigint"


def require_current_schema(connection: psycopg.Connection, cell: int | None = None) -> None:
    """Raise Unavailable unless the database has the schema that this code needs.

    Raises Refused as `require_cell` does.
    """
    try:
        row = connection.execute(CURRENT_REVISION, prepare=False).fetchone()
    except errors.UndefinedTable:
        row = None
    if row is None:
        if one_row(connection.execute("SELECT current_schema()", prepare=False))[0] is None:
            raise Unavailable(NOWHERE)
        raise Unavailable(f"the database's schema is empty, not {REVISION}; {UPGRADE}")
    if why := no_way_from(*row):
        raise Unavailable(why)
    if row[0] != REVISION:
        raise Unavailable(f"the database's schema is {row[0]}, not {REVISION}; {UPGRADE}")
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


def no_way_from(revision: str, has_library: bool) -> str:
    """Why a schema of this revision can't be upgraded; empty where it can."""
    found = f"the database's schema is {revision}"
    if revision > REVISION:
        return f"{found}, newer than this code, which needs {REVISION}; install the newer code"
    if revision not in REVISIONS or not has_library:
        return (
            f"{found}, of an earlier design, which this code can't upgrade;"
            " start with an empty database"
        )
    return ""


def refusal(error: psycopg.Error) -> str:
    """What the server said, in one line, with advice where the schema may be another one."""
    return database.why(error, MAYBE_ANOTHER)
