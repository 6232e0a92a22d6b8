"""`python -m analytics.close --upto DAY|RIDE|MOMENT`: closes the rides up to there.

A closing says what they add up to, once everything up to there was read once more, in Postgres and
in the warehouse, and is the same in both and in the ledger. It deletes nothing. From then on totals
that start late, heal a gap from before it, or recount, begin there (`consumers/totals/closing.py`),
and each run compares it with the warehouse.

* `--list` shows the closings.
* `--verify` reads everything up to the newest one again, on both sides.
* `--reopen ID --reason TEXT` gives up this one and all later ones, since these hold its sum; and
  asks all consumers to recount, in the same transaction.

The exit status is 0; 1 if --verify has found something; 2 if nothing was closed, reopened or shown;
70 for a bug. A crash leaves nothing behind. Nobody closes, or reopens, while a run is in progress.
"""

import argparse
import os
import signal
import sys
from contextlib import closing

import psycopg

from analytics import foreign
from analytics.findings import CLOSING_CHANGED, CLOSING_WRONG
from analytics.person import person
from analytics.prerequisites import require_packages
from analytics.reconcile import BUG, COULD_NOT_RUN, DRIFTED, the_only_run
from analytics.runs import last_completed
from analytics.upto import upto
from rocket_rides import revisions, settings
from rocket_rides.locks import Lock
from rocket_rides.words import command
from unified_log import database, errors
from unified_log.errors import Unavailable
from unified_log.process import Parser
from unified_log.repair import ASK_FOR_RECOUNTS

NAME = "python -m analytics.close"
DONE = {"upto": "closed", "list": "shown", "verify": "verified", "reopen": "reopened"}
# Whoever begins at a closing holds the lock, shared: it has committed once this has it.
ALONE = "SELECT pg_advisory_xact_lock(%s)"
IS_OPEN = "SELECT reopened_at FROM closings WHERE id = %s"
REOPEN = """
    UPDATE closings SET reopened_at = clock_timestamp(),
        reopened_by = %s || ' as ' || session_user, reason = %s
    WHERE id >= %s AND reopened_at IS NULL RETURNING id
"""


def reopen(connection: psycopg.Connection, number: int, reason: str) -> str:
    """Give up a closing and all later ones; returns what to say. Raises Unavailable.

    Also while anything else is held: whoever recounts is no witness of it any more.
    """
    if last := last_completed(connection):
        for finding in last.findings:
            if finding["held"] and finding["kind"] not in (CLOSING_CHANGED, CLOSING_WRONG):
                raise Unavailable(
                    f"run {last.id} holds something else, too: {finding['about']}. Approve it, or"
                    f" put it right and run {command('analytics.reconcile')}, first"
                )
    with connection.transaction():
        connection.execute(ALONE, [Lock.CLOSINGS])
        found = connection.execute(IS_OPEN, [number]).fetchone()
        if found is None:
            raise Unavailable(f"there is no closing {number}")
        if found != (None,):
            raise Unavailable(f"{number} was reopened before")
        values = [person(), reason, number]
        reopened = sorted(number for (number,) in connection.execute(REOPEN, values))
        asked = [reader for (reader,) in connection.execute(ASK_FOR_RECOUNTS)]
    which = ", ".join(map(str, reopened))
    return f"Reopened: {which}. Asked for a recount: {', '.join(asked) or 'no reader'}."


def listed(connection: psycopg.Connection) -> str:
    """A line for each closing."""
    from analytics import closings
    from analytics.report.closings import as_lines

    return "\n".join(as_lines(closings.read(connection)))


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = Parser(NAME, __doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--upto", type=upto, metavar="DAY|RIDE|MOMENT", help="in UTC, if it names no zone"
    )
    what.add_argument("--list", action="store_true", help="show all closings")
    what.add_argument("--verify", action="store_true", help="read all that is closed again")
    what.add_argument("--reopen", type=int, metavar="ID", help="give it up, and all later ones")
    parser.add_argument("--reason", metavar="TEXT", help="why, for whoever asks later")
    options = parser.parse_args(arguments)
    if (options.reopen is None) != (options.reason is None):
        parser.error("--reopen and --reason go together")
    if options.reason is not None and not options.reason.strip():
        parser.error("--reason is empty")
    return options


def main() -> None:
    """Close, show, verify or reopen; end the process with the status."""
    signal.signal(signal.SIGINT, lambda number, _: os._exit(128 + number))  # as in reconcile
    options, config = parse(), settings.load()
    foreign.keep_out(config.spark_master)
    status = 0
    try:
        if options.list:
            with closing(database.connect(config.postgres_url, "close")) as connection:
                revisions.require_schema(connection, config.cell)
                said = listed(connection)
        elif options.reopen is not None:
            with the_only_run(config.postgres_url, config.cell) as connection:
                said = reopen(connection, options.reopen, options.reason)
        else:
            require_packages()
            from analytics.closing import close, verify

            with the_only_run(config.postgres_url, config.cell) as connection:
                if options.verify:
                    said, agrees = verify(connection, config)
                    status = 0 if agrees else DRIFTED
                else:
                    said = close(connection, config, options.upto)
    except (Unavailable, psycopg.Error, OSError, UnicodeError) as reason:  # a byte of --reason
        done = [word for each, word in DONE.items() if getattr(options, each) not in (None, False)]
        sys.stderr.write(f"not {done[0]}: {errors.in_one_line(reason)}\n")
        raise SystemExit(COULD_NOT_RUN) from None
    except BaseException:  # also a panic of delta-rs; Python would exit with 1
        sys.excepthook(*sys.exc_info())
        raise SystemExit(BUG) from None
    sys.stdout.write(f"{said}\n")
    raise SystemExit(status)


if __name__ == "__main__":
    main()
