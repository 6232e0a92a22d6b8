"""`python -m unified_log.schema`: prints the SQL of the log's schema, or with --apply applies it.

It is applied to DATABASE_URL in one transaction, in the first schema of the search path. Where it
is already, nothing is done. What is printed does the same in psql.

A crash leaves behind nothing: all of it is committed, or none.
"""

import psycopg

from unified_log import database, process, schema, settings
from unified_log.errors import Unavailable, in_one_line
from unified_log.locks import SCHEMA

LOCK = "SELECT pg_advisory_xact_lock(%s)"


def script(cell: int) -> str:
    """What a person can give to psql."""
    return f"BEGIN;\nSET LOCAL unified_log.cell = {cell};\n\n{schema.statements()}\nCOMMIT;"


def applied(connection: psycopg.Connection, cell: int) -> str:
    """Apply it unless it is there; returns what to tell a person.

    Raises Unavailable where there is another revision that does not serve, or psycopg.Error.
    """
    with connection.transaction():
        connection.execute(LOCK, [SCHEMA])  # two at once: the second finds what the first has done
        if found := schema.revision(connection):
            schema.require(connection)
            return f"the schema of the log is up to date: revision {found[0]}"
        schema.apply(connection, cell)
    return f"applied the schema of the log, revision {schema.REVISION}, as cell {cell}"


def main() -> None:
    """Print the schema, or apply it and say so."""
    parser = process.Parser("python -m unified_log.schema", __doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--print", action="store_true", help="print the SQL (the default)")
    what.add_argument("--apply", action="store_true", help="apply it to DATABASE_URL")
    parser.add_argument(
        "--cell",
        type=int,
        default=0,
        choices=range(90),
        metavar="N",
        help="the number of this log, 0 to 89, among others whose positions it must not share"
        " (default: 0)",
    )
    given = parser.parse_args()
    if not given.apply:
        process.show(script(given.cell).splitlines())
        return
    config = settings.load()
    try:
        with database.connect(config.postgres_url, "schema") as connection:
            database.require_writable(connection)
            process.show([applied(connection, given.cell)])
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(f"not applied: {in_one_line(reason)}") from None


if __name__ == "__main__":
    main()
