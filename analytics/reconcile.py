"""`python -m analytics.reconcile`: checks what was derived from rides and ratings against them.

It guarantees that a total which it calls right is the exact sum of the rides up to the consumer's
checkpoint, and that one which two witnesses call wrong is reset: by the consumer itself, exactly,
wherever that stands by then. What only Postgres says is held for a person (`analytics.votes`).
Rides may be taken meanwhile. The exit status is 0 when everything agrees and everybody is there, 1
when something is wrong, held, gone or behind, 2 when the job could not run, 70 for a bug.

A crash leaves behind, by the step at which it comes:

* before the new rides are published: its row in `runs`, which the next run calls failed; a ledger,
  and files that the warehouse's log does not name, which a later run deletes once they are two days
  old; or an unreadable log that is half put aside, which the next run finds unreadable, or as an
  earlier run left it.
* after that and before the commit: the same row, which names the ledger, and a warehouse with this
  run's rides. The next run continues from there, and detects the same drift.
* after the commit: nothing.

Only one run at a time: the session that emits the result holds an advisory lock. Of two runs in two
databases on one warehouse the second to commit there ends, with status 2.
"""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from analytics import foreign
from analytics.emit import require_rights
from analytics.freeze import freeze
from analytics.ownership import why_rebuild
from analytics.prerequisites import require_java, require_packages
from rocket_rides import fleet, logs, revisions, settings, telemetry
from rocket_rides.locks import Lock
from unified_log import database, errors
from unified_log.errors import Unavailable
from unified_log.locks import try_lock
from unified_log.process import Parser

if TYPE_CHECKING:
    from analytics.result import Result
    from analytics.runs import Run
    from analytics.warehouse import Warehouse

# The exit status.
AGREED, DRIFTED, COULD_NOT_RUN, BUG = 0, 1, 2, 70
RELEASE = "SELECT pg_advisory_unlock(%s)"
# No statement is worth parallel workers.
SESSION = {"max_parallel_workers_per_gather": "0", "lock_timeout": "1min"}
DESCRIPTION = """Check totals, minutes, receipts, the sums of ratings and the outbox against the
rides and ratings, and have what is wrong repaired. The exit status is 0 when everything agrees, 1
when it does not, 2 when the job could not run, 70 for a bug."""


def run(arguments: argparse.Namespace, config: settings.Settings) -> int:
    """Run the job once, print its result, and return the exit status.

    Raises Unavailable, psycopg.Error or OSError.
    """
    require_packages()
    from analytics.runs import recorded
    from analytics.warehouse import Warehouse

    warehouse = Warehouse(config.warehouse, config.warehouse_retention_days)
    require_java()
    with the_only_run(config.postgres_url, config.cell) as connection:
        if not arguments.check:
            require_rights(connection)
        with recorded(connection, checking=arguments.check) as row:
            result = judge(connection, warehouse, row, arguments, config)
        with telemetry.stage("report"):
            tell(result, connection, arguments)
    return AGREED if result.agrees else DRIFTED


def judge(
    connection: psycopg.Connection,
    warehouse: "Warehouse",
    row: "Run | None",
    arguments: argparse.Namespace,
    config: settings.Settings,
) -> "Result":
    """The run itself, in a Spark session. Raises Unavailable, psycopg.Error or OSError."""
    if not arguments.check:
        warehouse.make_ready()
    # Another database's warehouse is refused before Spark takes seconds to start.
    why_rebuild(warehouse.root, warehouse.owners(), freeze(connection).history)
    # Imported late: Spark takes a second, and most problems have shown by now.
    from analytics.asking import spark_with_deadline
    from analytics.job import Job
    from analytics.progress import shown

    with spark_with_deadline(config) as spark:
        show = partial(shown, spark)
        job = Job(
            connection, spark, config.postgres_url, warehouse, row,
            shown=show, reread_days=config.reread_days,
        )  # fmt: skip
        return job.run_once(full=arguments.full)


def tell(result: "Result", connection: psycopg.Connection, arguments: argparse.Namespace) -> None:
    """Print the result and write the files. A failure to write is reported and undoes nothing."""
    from analytics.emit import past_runs
    from analytics.report.machine import as_json
    from analytics.report.page import as_html
    from analytics.report.text import as_text

    try:
        logs.say(as_text(result).removesuffix("\n"))
    except OSError:  # nobody is reading; discard what Python would still flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    files: list[tuple[Path | None, Callable[[], bytes]]] = [
        (arguments.json, lambda: as_json(result)),
        (arguments.report, lambda: as_html(result, past_runs(connection)).encode()),
    ]
    for path, content in files:
        try:
            if path:
                path.write_bytes(content())
        except (OSError, psycopg.Error) as error:
            logs.say(f"can't write {path}: {errors.in_one_line(error)}", logging.ERROR)


@contextmanager
def the_only_run(url: str, cell: int | None = None) -> Iterator[psycopg.Connection]:
    """A connection that holds the lock of the only run. Raises Unavailable or psycopg.Error."""
    with closing(database.connect(url, "reconciler", **SESSION)) as connection:
        revisions.require_schema(connection, cell)
        if not try_lock(connection, Lock.RECONCILIATION):
            raise Unavailable("another run is in progress")
        try:
            yield connection
        finally:
            # A server may end the session a moment later than who comes next asks for the lock.
            with suppress(psycopg.Error):
                connection.execute(RELEASE, [Lock.RECONCILIATION])


def writable(name: str) -> Path:
    """A file name from the command line, refused at once if the file can't be written."""
    path = Path(name)
    try:
        target = path if path.exists() else path.absolute().parent
        if path.is_dir() or not os.access(target, os.W_OK):
            raise PermissionError
    except OSError as error:
        reason = f": {error.strerror}" if error.strerror else ""
        raise argparse.ArgumentTypeError(f"{name} can't be written{reason}") from None
    return path


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = Parser("python -m analytics.reconcile", DESCRIPTION)
    parser.add_argument("--check", action="store_true", help="report only: change nothing")
    parser.add_argument("--full", action="store_true", help="start again from the first ride")
    parser.add_argument(
        "--json", type=writable, metavar="FILE", help="write the result to FILE, as JSON"
    )
    parser.add_argument(
        "--report", type=writable, metavar="FILE", help="write a report to FILE, as HTML"
    )
    return parser.parse_args(arguments)


def main() -> None:
    """Run the job and end the process with its status."""
    # PySpark handles an interrupt in many loud ways. Its JVM ends when this process does.
    signal.signal(signal.SIGINT, lambda number, _: os._exit(128 + number))
    if isinstance(sys.stdout, TextIOWrapper):  # a consumer's name may be in any script
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = parse()
    config = settings.load()
    foreign.keep_out(config.spark_master)
    if config.log_format == logs.JSON:
        logs.configure(config.log_level, logs.JSON)
    try:
        telemetry.configure(config, "reconciler")
        with telemetry.stage("reconcile"):
            status = run(arguments, config)
    except (Unavailable, psycopg.Error, OSError) as reason:
        nobody = fleet.not_started(config.data_dir) if config.embedded_postgres else ""
        logs.say(f"not reconciled: {nobody or errors.in_one_line(reason)}", logging.ERROR)
        raise SystemExit(COULD_NOT_RUN) from None
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException:  # also a panic of delta-rs
        sys.excepthook(*sys.exc_info())  # Python would exit with 1, which means drift
        raise SystemExit(BUG) from None
    raise SystemExit(status)


if __name__ == "__main__":
    main()
