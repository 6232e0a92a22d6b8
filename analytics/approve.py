"""`python -m analytics.approve RUN --reason TEXT`: the next run takes from Postgres what is held.

A run holds what it must not decide: rides that are gone from Postgres, or changed in it, and totals
that only Postgres contradicts. Once a person has found out who did that, there are two ways:

* Postgres is right: approve it. The next run reads those rides again, and has the totals reset; but
  only if it finds exactly what RUN has found.
* Postgres is wrong: `--put-back` prints the statements that put the rides back as the warehouse has
  them. Read them, then run them by psql; the next run finds nothing.

The exit status is 0, or 2 if nothing was approved or printed. A crash leaves nothing behind.
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg

from analytics.findings import CLOSING_WRONG, RATINGS_CHANGED, Finding, digest
from analytics.person import person
from analytics.prerequisites import require_packages
from analytics.runs import last_completed
from rocket_rides import revisions, settings
from rocket_rides.locks import Lock
from rocket_rides.words import command
from unified_log import database, errors
from unified_log.database import one_row
from unified_log.errors import Unavailable
from unified_log.process import Parser

if TYPE_CHECKING:
    from analytics.rows import Fields, Rows

NAME = "python -m analytics.approve"
COULD_NOT = 2
BY_HAND = "nobody has kept the stars of each rating: correct them by hand, or approve that"
# A run that is in progress would be the next one to complete, and no longer ask for approvals.
ALONE = "SELECT pg_try_advisory_xact_lock(%s)"
APPROVE = """
    INSERT INTO approvals (run_id, digest, reason, approved_by)
    VALUES (%s, %s, %s, %s || ' as ' || session_user)
    ON CONFLICT (run_id) DO NOTHING RETURNING run_id
"""


def held(connection: psycopg.Connection, run: int) -> list[dict[str, Any]]:
    """The findings that a run holds. Raises Unavailable if it holds none, or is not the last."""
    last = last_completed(connection)
    if last is None or last.id != run:
        which = f"that is {last.id}" if last else "there is none"
        raise Unavailable(f"{run} is not the last run that completed: {which}")
    found = [finding for finding in last.findings if finding["held"]]
    if not found:
        raise Unavailable(f"run {run} holds nothing")
    if all(finding["kind"] == CLOSING_WRONG for finding in found):
        raise Unavailable(
            f"a closing is not approved: {command('analytics.close')} --reopen gives it up"
        )
    return found


def approve(connection: psycopg.Connection, run: int, reason: str) -> str:
    """Write the approval down; returns what to say. Raises Unavailable."""
    with connection.transaction():
        if one_row(connection.execute(ALONE, [Lock.RECONCILIATION])) != (True,):
            raise Unavailable("a run is in progress: approve what it finds, once it has ended")
        found = held(connection, run)
        keys = [Finding(each["kind"], each["about"], True, each["key"]) for each in found]
        values = [run, digest(keys), reason, person()]
        if connection.execute(APPROVE, values).fetchone() is None:
            raise Unavailable(f"run {run} was approved before")
    about = "\n".join(f"  {each['about']}" for each in found)
    return f"Approved, for the next run, if it finds the same:\n{about}\n"


def put_back(connection: psycopg.Connection, run: int, config: settings.Settings) -> Iterator[str]:
    """The statements that make Postgres' rides those of the warehouse. Raises Unavailable."""
    from analytics import parquet, rows
    from analytics.from_postgres import this_table
    from analytics.ledger import Broken
    from analytics.warehouse import Warehouse

    found = held(connection, run)
    ranges = [each for each in found if each.get("after") is not None]
    ratings = [each["about"] for each in found if each["kind"] == RATINGS_CHANGED]
    if not ranges:
        raise Unavailable(f"run {run} holds no rides{f'; {BY_HAND}' if ratings else ''}")
    warehouse = Warehouse(config.warehouse)
    name = this_table(connection)
    yield "BEGIN;"
    for each in ranges:
        after, upto = each["after"], each["upto"]
        try:
            files = [file[:2] for file in warehouse.files_of([(after, upto)])]
            in_files = parquet.read(warehouse.table.store, files, after, upto)
        except (Broken, ValueError) as error:
            raise Unavailable(f"the warehouse can't be read: {error}") from None
        in_postgres = read_by(connection, name, after, upto)
        for ride, ours, theirs in rows.differing(in_postgres, in_files):
            yield putting_back(
                name, ride, ours is not None, rows.said(theirs[0] if theirs else None)
            )
    yield "COMMIT;"
    for about in ratings:
        yield f"-- {about}: {BY_HAND}"


def read_by(connection: psycopg.Connection, table: str, after: int, upto: int) -> "Rows":
    """As this session reads them: it has a deadline, as one of ADBC's would not."""
    import pyarrow as pa

    from analytics.from_postgres import RIDES_IN_RANGE, as_rows

    rides = connection.execute(RIDES_IN_RANGE.format(table=table, after=after, upto=upto))
    numbers, moments, millimetres = (
        zip(*rides.fetchall(), strict=True) if rides.rowcount else ((), (), ())
    )
    return as_rows(
        pa.record_batch(
            [
                pa.array(numbers, pa.int64()),
                pa.array(moments, pa.timestamp("us", "UTC")),
                pa.array(millimetres, pa.int64()),
            ],
            names=["id", "created_at", "millimetres"],
        )
    )


# A person reads them, and runs them by psql; the values are numbers and a time of our own.
ADDED = "-- not in the warehouse: DELETE FROM {table} WHERE id = {ride};"
CHANGED = "UPDATE {table} SET created_at = '{at}', distance = {metres} WHERE id = {ride};"
GONE = (
    "INSERT INTO {table} (id, created_at, distance) OVERRIDING SYSTEM VALUE"
    " VALUES ({ride}, '{at}', {metres});"
)


def putting_back(table: str, ride: int, is_there: bool, fields: "Fields | None") -> str:
    """What makes a ride what the warehouse says."""
    if fields is None:  # nobody should delete what a machine has printed
        return ADDED.format(table=table, ride=ride)
    if fields.created_at is None or fields.distance is None:
        return f"-- ride {ride} can't be read in the warehouse"
    if not fields.knows_its_time:
        return f"-- ride {ride}: the warehouse does not know its time"
    at = fields.created_at.isoformat(sep=" ")
    statement = CHANGED if is_there else GONE
    return statement.format(table=table, ride=ride, at=at, metres=f"{fields.distance:f}")


def main() -> None:
    """Approve, or print; end the process with the status."""
    parser = Parser(NAME, __doc__)
    parser.add_argument("run", type=int, metavar="RUN", help="the run, as it has said")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--reason", metavar="TEXT", help="why Postgres is right, for whoever asks later"
    )
    what.add_argument("--put-back", action="store_true", help="print statements, change nothing")
    options, config = parser.parse_args(), settings.load()
    try:
        if options.reason is not None and not options.reason.strip():
            raise Unavailable("--reason is empty")
        with closing(database.connect(config.postgres_url, "approve")) as connection:
            revisions.require_schema(connection, config.cell)
            if options.put_back:
                require_packages()
                said = "\n".join(put_back(connection, options.run, config)) + "\n"
            else:
                said = approve(connection, options.run, options.reason)
    except (Unavailable, psycopg.Error, OSError, UnicodeError) as reason:  # a byte of --reason
        done = "printed" if options.put_back else "approved"
        sys.stderr.write(f"not {done}: {errors.in_one_line(reason)}\n")
        raise SystemExit(COULD_NOT) from None
    sys.stdout.write(said)


if __name__ == "__main__":
    main()
