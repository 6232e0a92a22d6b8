"""The schema of the log: its SQL, and applying it.

An application calls `apply` from a migration of its own, whatever its migrations are numbered: the
library's version is in `schema_versions`, beside that of other components. Then it attaches its
kinds of records: `SELECT attach('orders', 'position', 'order.create', $$...$$)`.
"""

from pathlib import Path
from typing import Any

import psycopg

FILES = [Path(__file__).with_name(name) for name in ("1_log.sql", "2_kinds.sql")]
COMPONENT = "unified_log"
REVISION = 1  # the schema that this code was written for

CELL = "SELECT set_config('unified_log.cell', %s, true)"


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
