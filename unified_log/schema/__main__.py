"""`python -m unified_log.schema`: prints the SQL of the log's schema, or with --apply applies it.

It is applied to DATABASE_URL in one transaction, in the first schema of the search path. Where it
is already, nothing is done. What is printed does the same in psql.

A crash leaves behind nothing: all of it is committed, or none.
"""

import argparse
import signal

import psycopg

from unified_log import database, process, schema, settings
from unified_log.errors import Unavailable

CELLS = 90


def script(cell: int) -> str:
    """What a person can give to psql."""
    return f"BEGIN;\nSET LOCAL unified_log.cell = {cell};\n\n{schema.statements()}\nCOMMIT;"


def applied(connection: psycopg.Connection, cell: int | None) -> str:
    """Apply it unless it is there; returns what to tell a person. Raises as `schema.apply` does."""
    if found := schema.apply(connection, cell):
        return f"the schema of the log is up to date: revision {found}"
    return f"applied the schema of the log, revision {schema.LOG.revision}, as cell {cell or 0}"


def cell_number(text: str) -> int:
    """A cell of the command line. Raises argparse.ArgumentTypeError."""
    if not (text.isascii() and text.isdecimal() and int(text) < CELLS):
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 0 to {CELLS - 1} is expected")
    return int(text)


def main() -> None:
    """Print the schema, or apply it and say so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process quietly
    parser = process.Parser("python -m unified_log.schema", __doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--print", action="store_true", help="print the SQL (the default)")
    what.add_argument("--apply", action="store_true", help="apply it to DATABASE_URL")
    parser.add_argument(
        "--cell",
        type=cell_number,
        metavar="N",
        help="the number of this log, 0 to 89, among others whose positions it must not share"
        " (default: 0)",
    )
    given = parser.parse_args()
    if not given.apply:
        process.show(script(given.cell or 0).splitlines())
        return
    config = settings.load()
    try:
        with database.connect(config.postgres_url, "schema") as connection:
            database.require_writable(connection)
            process.show([applied(connection, given.cell)])
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(f"not applied: {database.why(reason)}") from None


if __name__ == "__main__":
    main()
