"""The schema of the log: its SQL, applying it, and whether a database has it.

An application calls `apply` from a migration of its own, whatever its migrations are numbered: the
library's version is in `schema_versions`, beside that of other components. Then it attaches its
kinds of records: `SELECT attach('orders', 'position', 'order.create', $$...$$)`.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from unified_log import database
from unified_log.database import NOWHERE, one_row
from unified_log.errors import Refused, Unavailable
from unified_log.locks import SCHEMA

FILES = [
    Path(__file__).with_name(name)
    for name in ("1_log.sql", "2_kinds.sql", "3_refusals.sql", "4_data.sql")
]
COMPONENT = "unified_log"
REVISION = 1  # the schema that this code was written for

LOCK = "SELECT pg_advisory_xact_lock(%s)"
CELL = "SELECT set_config('unified_log.cell', %s, true)"
IS_THERE = "SELECT to_regclass('schema_versions') IS NOT NULL"
FOUND = "SELECT revision, serves_from FROM schema_versions WHERE component = %s"
CELL_FOUND = "SELECT number FROM cell"
APPLY = "python -m unified_log.schema --apply creates it"


def statements() -> str:
    """All of the SQL, for a person to read."""
    return "\n\n".join(file.read_text() for file in FILES)


def apply(connection: "psycopg.Connection[Any]", cell: int | None = None) -> int | None:
    """Create the schema, in the first schema of the search path, unless it is there already.

    In the caller's transaction, or, where the connection commits by itself, in one of its own.
    `cell` is the number of this log among others whose positions it must not share, from 0 to 89;
    0 where none is told. Returns the revision that was there, or None. Raises Unavailable where
    that does not serve, Refused where there is another cell, or psycopg.Error.
    """
    with connection.transaction() if connection.autocommit else nullcontext():
        connection.execute(LOCK, [SCHEMA])  # two at once: the second finds what the first has done
        if found := revision(connection):
            require(connection)
            _require_cell(connection, cell)
            return found[0]
        connection.execute(CELL, [str(cell or 0)])
        for file in FILES:
            connection.execute(file.read_text().encode(), prepare=False)
    return None


def _require_cell(connection: "psycopg.Connection[Any]", cell: int | None) -> None:
    with connection.cursor(row_factory=tuple_row) as cursor:
        found = one_row(cursor.execute(CELL_FOUND, prepare=False))[0]
    if cell not in (None, found):
        raise Refused(f"the database is cell {found}, not {cell}, which can't be changed")


def require(connection: psycopg.Connection) -> None:
    """Raise Unavailable unless the database has a schema that serves this code."""
    found = revision(connection)
    if found is None:
        if one_row(connection.execute("SELECT current_schema()", prepare=False))[0] is None:
            raise Unavailable(NOWHERE)
        raise Unavailable(f"the database has no schema of the log; {APPLY}")
    has, serves_from = found
    if has < REVISION:
        raise Unavailable(
            f"the schema of the log has revision {has}, and this code needs {REVISION};"
            " run the migration that upgrades it"
        )
    if serves_from > REVISION:
        raise Unavailable(
            f"the schema of the log has revision {has}, which does not serve this code, of"
            f" {REVISION}; install the newer code"
        )


def revision(connection: "psycopg.Connection[Any]") -> tuple[int, int] | None:
    """The revision that the database has, and the oldest code that it serves; None without one.

    Raises Unavailable where this role may not know.
    """
    with connection.cursor(row_factory=tuple_row) as cursor:
        if not one_row(cursor.execute(IS_THERE, prepare=False))[0]:
            return None
        try:
            return cursor.execute(FOUND, [COMPONENT], prepare=False).fetchone()
        except psycopg.errors.InsufficientPrivilege as error:
            said = database.why(error)
            raise Unavailable(f"{said}: connect as the owner of the log's tables") from None
