"""`python -m unified_log.held_out`: the records that are held out, for a person to decide on.

A record is held out when its consumer's handler, or Postgres, refuses it: the consumer's state
lacks it, and has all others. Nothing forgets it: it stays until the consumer counts it.

    python -m unified_log.held_out list
    python -m unified_log.held_out retry KIND NAME POSITION...
    python -m unified_log.held_out drop KIND NAME POSITION...

`retry` asks the consumer to try it again, within a second or so, once the reason is gone. `drop`
gives it up: nobody waits for a decision any more, and the state goes on lacking it. Either takes
the other back. In place of positions, --all is for all of a consumer's that wait for a decision,
or, without KIND and NAME, for all of everybody's. What can't be done is named, with the reason; the
exit status is then 1. This changes no state by itself.
"""

import argparse
import signal
from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from unified_log import database, settings
from unified_log.errors import Unavailable
from unified_log.process import Parser, show
from unified_log.words import count

LONGEST_LOCK = "5s"  # a consumer that somebody paused in the middle of a retry

LIST = """
    SELECT kind, name, position, type, held_out_at, attempts, retry, dropped_at, reason
    FROM held_out_records ORDER BY kind, name, position
"""
# Locked in the order of the list. A decision that another person has just made, --all leaves alone;
# and what a consumer has just counted is there no more. All three say alike which are meant.
LOCK = """
    SELECT FROM held_out_records
    WHERE (%(kind)s::text IS NULL OR (kind, name) = (%(kind)s, %(name)s))
      AND CASE WHEN %(all)s THEN NOT retry AND dropped_at IS NULL
               ELSE position = ANY(%(positions)s) END
    ORDER BY kind, name, position FOR NO KEY UPDATE
"""
RETRY = """
    UPDATE held_out_records SET retry = true, dropped_at = NULL
    WHERE (%(kind)s::text IS NULL OR (kind, name) = (%(kind)s, %(name)s))
      AND CASE WHEN %(all)s THEN NOT retry AND dropped_at IS NULL
               ELSE position = ANY(%(positions)s) END
      AND NOT retry
    RETURNING kind, name, position
"""
DROP = """
    UPDATE held_out_records SET retry = false, dropped_at = now()
    WHERE (%(kind)s::text IS NULL OR (kind, name) = (%(kind)s, %(name)s))
      AND CASE WHEN %(all)s THEN NOT retry AND dropped_at IS NULL
               ELSE position = ANY(%(positions)s) END
      AND dropped_at IS NULL
    RETURNING kind, name, position
"""
CHANGES = {"retry": (RETRY, "to be tried again"), "drop": (DROP, "dropped")}
WHY_NOT = """
    SELECT CASE WHEN retry THEN 'it is to be tried again already'
                WHEN dropped_at IS NOT NULL THEN 'it was dropped already' ELSE 'ask again' END
    FROM held_out_records WHERE kind = %s AND name = %s AND position = %s
"""
IS_THERE = "SELECT FROM checkpoints WHERE kind = %s AND name = %s"
SAY = "say `list`; or `retry` or `drop` with KIND NAME POSITION..., or with --all"


class Named(NamedTuple):
    """Whose state lacks the record at which position."""

    kind: str
    name: str
    position: int

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.position}"


def records(connection: psycopg.Connection) -> list[str]:
    """A line about each record that is held out. Raises psycopg.Error."""
    return [
        f"{Named(kind, name, position)}: {type_}, held out since {since:%Y-%m-%dT%H:%M:%SZ},"
        f" after {count(attempts, 'attempt')}"
        f"{' (to be tried again)' * retry}{' (dropped)' * (dropped_at is not None)}: {reason}"
        for kind, name, position, type_, since, attempts, retry, dropped_at, reason
        in connection.execute(LIST)
    ]  # fmt: skip


def change(connection: psycopg.Connection, given: argparse.Namespace) -> list[Named]:
    """Have records tried again, or drop them; returns those that it was done to.

    For the caller's transaction. Raises psycopg.Error.
    """
    statement, _ = CHANGES[given.action]
    connection.execute(LOCK, vars(given))  # the next statement sees what this one waited for
    found = connection.execute(statement, vars(given))
    return sorted(Named(*row) for row in found)


def run(connection: psycopg.Connection, given: argparse.Namespace) -> int:
    """Do what the command line says; returns the exit status. Raises psycopg.Error."""
    if given.action == "list":
        show(records(connection) or ["no record is held out"])
        return 0
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    with connection.transaction():
        done = change(connection, given)
    _, what = CHANGES[given.action]
    lines = [f"{each}: {what}" for each in done]
    asked = {Named(given.kind, given.name, position) for position in given.positions}
    refused = sorted(asked - {*done})
    lines += [f"{each}: not done: {why_not(connection, each)}" for each in refused]
    show(lines or ["no record waits for a decision"])
    return 1 if refused else 0


def why_not(connection: psycopg.Connection, asked: Named) -> str:
    """Why nothing was done to a record. Raises psycopg.Error."""
    if row := connection.execute(WHY_NOT, asked).fetchone():
        return str(row[0])
    if connection.execute(IS_THERE, asked[:2]).fetchone() is None:
        return "there is no such reader"
    return "it is not held out"


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = Parser("python -m unified_log.held_out", __doc__)
    parser.add_argument("action", nargs="?", choices=["list", *CHANGES])
    parser.add_argument("kind", metavar="KIND", nargs="?", type=text, help="the consumer's kind")
    parser.add_argument("name", metavar="NAME", nargs="?", type=text, help="and its name")
    position = "a record's position, as `list` says it"
    parser.add_argument("positions", metavar="POSITION", nargs="*", type=int, help=position)
    parser.add_argument("--all", action="store_true", help="all that wait for a decision")
    given = parser.parse_intermixed_args(words)  # --all may stand anywhere
    of_whom = given.kind is None, given.name is None
    fits = of_whom[0] and not given.all
    if given.action != "list":
        fits = bool(given.positions) != given.all and of_whom[0] == of_whom[1]
    if not fits:
        parser.error(SAY)
    return given


def text(word: str) -> str:
    """A name that Postgres can be asked for. Raises ValueError."""
    word.encode()
    return word


def main() -> int:
    """Run the command, and return its exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process quietly
    given, config = parse(), settings.load()
    url = ""
    try:
        url = config.postgres_url
        with database.connect(url, "held-out records", lock_timeout=LONGEST_LOCK) as connection:
            config.require_schema(connection)
            return run(connection, given)
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(config.why_absent(url) or database.why(reason)) from None


if __name__ == "__main__":
    raise SystemExit(main())
