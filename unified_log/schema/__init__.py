"""The schema of the log: its SQL, applying it, and whether a database has it.

An application calls `apply` from a migration of its own, whatever its migrations are numbered: the
library's version is in `schema_versions`, beside that of other components. Then it attaches its
kinds of records: `SELECT attach('orders', 'position', 'order.create', $$...$$)`.
"""

from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from unified_log import locks
from unified_log.database import one_row
from unified_log.errors import Refused, Unavailable
from unified_log.schema import serving
from unified_log.schema.serving import Component

FILES = [
    Path(__file__).with_name(name)
    for name in ("1_log.sql", "2_kinds.sql", "3_refusals.sql", "4_data.sql")
]
LOCK = "SELECT pg_advisory_xact_lock(%s)"
CELL = "SELECT set_config('unified_log.cell', %s, true)"
CELL_FOUND = "SELECT number FROM cell"
# For the first version: a later one's upgrade says what it is.
IS_OF = "INSERT INTO schema_versions VALUES ('{}', {}, {}, '{}');"

# The schema that this code was written for.
LOG = Component(
    name="unified_log",
    schema="the schema of the log",
    revision=1,
    digest=sha256("".join(file.read_text() for file in FILES).encode()).hexdigest(),
    lock=locks.CODE,
    absent="the database has no schema of the log; python -m unified_log.schema --apply creates it",
    upgrade="run the migration that upgrades it",
)


def statements() -> str:
    """All of the SQL, for a person to read."""
    version = IS_OF.format(LOG.name, LOG.revision, LOG.revision, LOG.digest)
    return "\n\n".join([*(file.read_text() for file in FILES), version + "\n"])


def apply(connection: "psycopg.Connection[Any]", cell: int | None = None) -> int | None:
    """Create the schema, in the first schema of the search path, unless it is there already.

    In the caller's transaction, or, where the connection commits by itself, in one of its own.
    `cell` is the number of this log among others whose positions it must not share, from 0 to 89;
    0 where none is told. Returns the revision that was there, or None. Raises Unavailable where
    that does not serve this code, Refused where there is another cell, or psycopg.Error.
    """
    with connection.transaction() if connection.autocommit else nullcontext():
        connection.execute(LOCK, [locks.SCHEMA])  # two at once: the second finds what is done
        if found := serving.versions(connection).get(LOG.name):
            if why := LOG.refusal(found):
                raise Unavailable(why)
            _require_cell(connection, cell)
            return found.revision
        connection.execute(CELL, [str(cell or 0)])
        connection.execute(statements().encode(), prepare=False)
    return None


def _require_cell(connection: "psycopg.Connection[Any]", cell: int | None) -> None:
    with connection.cursor(row_factory=tuple_row) as cursor:
        found = one_row(cursor.execute(CELL_FOUND, prepare=False))[0]
    if cell not in (None, found):
        raise Refused(f"the database is cell {found}, not {cell}, which can't be changed")


def require(connection: psycopg.Connection) -> None:
    """Raise Unavailable unless the database has a schema that serves this code."""
    serving.require(connection, LOG)
