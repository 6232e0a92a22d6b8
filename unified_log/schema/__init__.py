"""The schema of the log: its SQL, applying it, and whether a database has it.

An application calls `apply` from a migration of its own, whatever its migrations are numbered: the
library's version is in `schema_versions`, beside that of other components. Then it attaches its
kinds of records: `SELECT attach('orders', 'position', 'order.create', $$...$$)`.
"""

from pathlib import Path
from typing import Any

import psycopg

from unified_log.database import NOWHERE, one_row
from unified_log.errors import Unavailable

FILES = [
    Path(__file__).with_name(name)
    for name in ("1_log.sql", "2_kinds.sql", "3_refusals.sql", "4_data.sql")
]
COMPONENT = "unified_log"
REVISION = 1  # the schema that this code was written for

CELL = "SELECT set_config('unified_log.cell', %s, true)"
IS_THERE = "SELECT to_regclass('schema_versions') IS NOT NULL"
FOUND = "SELECT revision, serves_from FROM schema_versions WHERE component = %s"
APPLY = "python -m unified_log.schema --apply creates it"


def statements() -> str:
    """All of the SQL, for a person to read."""
    return "\n\n".join(file.read_text() for file in FILES)


def apply(connection: "psycopg.Connection[Any]", cell: int = 0) -> None:
    """Create the schema, in the caller's transaction, in the first schema of its search path.

    `cell` is the number of this log among others whose positions it must not share, from 0 to 89.
    Raises psycopg.Error.
    """
    connection.execute(CELL, [str(cell)])
    for file in FILES:
        connection.execute(file.read_text().encode(), prepare=False)


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


def revision(connection: psycopg.Connection) -> tuple[int, int] | None:
    """The revision that the database has, and the oldest code that it serves; None without one."""
    if not one_row(connection.execute(IS_THERE, prepare=False))[0]:
        return None
    return connection.execute(FOUND, [COMPONENT], prepare=False).fetchone()
