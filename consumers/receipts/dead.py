"""`python -m consumers.receipts.dead`: the receipts that were given up, for a person to decide on.

A receipt is a dead letter when its receiver refused it for good, or when RECEIPT_ATTEMPTS attempts
have failed. Nothing forgets it: it stays until it is delivered. To `replay` one marks it; a worker
takes it up within a second or so, with as many attempts as at first. To `drop` one takes it off the
list, for good. Both say which they could not do and why, and then exit with status 1.
"""

import argparse
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import psycopg
from psycopg.rows import dict_row

from rocket_rides import database, fleet, settings
from rocket_rides.errors import Unavailable, in_one_line
from rocket_rides.log import LARGEST_ID
from rocket_rides.receipts import WAITS_FOR_A_DECISION, WEBHOOK_ID

COLUMNS = f"""
    ride_id, {WEBHOOK_ID} AS webhook_id, distance,
    to_char(created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS ride_created_at,
    outcome, reason, attempts - excused AS attempts, first_at, decided_at, dead_at, replay_at,
    dropped_at
    FROM receipts JOIN rides ON rides.id = ride_id CROSS JOIN receipts_state
"""
LIST = f"SELECT {COLUMNS} WHERE dead_at IS NOT NULL AND dropped_at IS NULL ORDER BY ride_id"
SHOW = f"SELECT {COLUMNS} WHERE ride_id = %s"

# Locked in the order of their rides, as everywhere; of two people, the second finds nothing to do.
WHICH = f"""
    SELECT ride_id FROM receipts
    WHERE {WAITS_FOR_A_DECISION} AND (%(all)s OR ride_id = ANY(%(rides)s)) ORDER BY ride_id
"""  # noqa: S608
# The attempts so far are kept, and no longer count towards the most that there may be. `outcome`
# stays: it is dead until it is decided anew.
REPLAY = f"""
    WITH letters AS MATERIALIZED ({WHICH} FOR NO KEY UPDATE)
    UPDATE receipts SET replay_at = now(), due_at = now(), excused = attempts, unfinished = 0,
        lease = NULL
    FROM letters WHERE receipts.ride_id = letters.ride_id RETURNING receipts.ride_id
"""  # noqa: S608
DROP = f"""
    WITH letters AS MATERIALIZED ({WHICH} FOR NO KEY UPDATE)
    UPDATE receipts SET dropped_at = now()
    FROM letters WHERE receipts.ride_id = letters.ride_id RETURNING receipts.ride_id
"""  # noqa: S608
CHANGES = {"replay": REPLAY, "drop": DROP}

Letter = dict[str, Any]

ENCODER = msgspec.json.Encoder(decimal_format="number")
NONE = "no dead letters"
DONE = {"replay": "to be sent again", "drop": "dropped"}
WOULD_BE = {"replay": "would be sent again", "drop": "would be dropped"}


def find(connection: psycopg.Connection, query: str, *values: object) -> list[Letter]:
    """What LIST or SHOW finds. Raises psycopg.Error."""
    return connection.cursor(row_factory=dict_row).execute(query, values).fetchall()


def change(
    connection: psycopg.Connection,
    action: str,
    rides: Sequence[int],
    *,
    every: bool = False,
    dry_run: bool = False,
) -> list[int]:
    """Replay or drop dead letters: all, or those of `rides`; returns the rides that it was done to.

    With `dry_run`, those that it would be done to. Raises psycopg.Error.
    """
    values = {"all": every, "rides": list(rides)}
    found = connection.execute(WHICH if dry_run else CHANGES[action], values)
    return sorted(ride_id for (ride_id,) in found)


def why_not(letter: Letter | None) -> str:
    """Why a receipt can neither be replayed nor dropped."""
    if letter is None:
        return "it is not in the queue yet, or there is no such ride"
    if letter["outcome"] == "delivered":
        return "it was delivered"
    if letter["replay_at"]:
        return "it is being sent again already"
    return "it was dropped" if letter["dropped_at"] else "it is not dead: it is being delivered"


def describe(letter: Letter) -> str:
    """One line about a dead letter."""
    state = " (to be sent again)" if letter["replay_at"] else ""
    times = "attempt" if letter["attempts"] == 1 else "attempts"
    return (
        f"ride {letter['ride_id']}, {letter['distance']} m, dead since {as_text(letter['dead_at'])}"
        f" after {letter['attempts']} {times}{state}: {letter['reason']}"
    )


def as_text(value: object) -> str:
    """A value as the API shows it; a dash for none."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return "-" if value is None else str(value)


def run(connection: psycopg.Connection, arguments: argparse.Namespace) -> int:
    """Do what the command line says; returns the exit status."""
    if arguments.action == "list":
        letters = find(connection, LIST)
        say(arguments, letters, [describe(letter) for letter in letters] or [NONE])
        return 0
    if arguments.action == "show":
        [ride_id] = arguments.rides
        for letter in find(connection, SHOW, ride_id):
            say(arguments, letter, [f"{name:16}{as_text(value)}" for name, value in letter.items()])
            return 0
        raise Unavailable(f"no receipt of ride {ride_id} is in the queue")
    dry_run = arguments.dry_run
    done = change(
        connection, arguments.action, arguments.rides, every=arguments.all, dry_run=dry_run
    )
    refused = {
        ride_id: why_not(next(iter(find(connection, SHOW, ride_id)), None))
        for ride_id in sorted({*arguments.rides} - {*done})
    }
    what = (WOULD_BE if dry_run else DONE)[arguments.action]
    lines = [f"ride {ride_id}: {what}" for ride_id in done]
    lines += [f"ride {ride_id}: not done: {why}" for ride_id, why in refused.items()]
    say(arguments, {"done": done, "refused": refused, "dry_run": dry_run}, lines or [NONE])
    return 1 if refused else 0


def say(arguments: argparse.Namespace, found: object, lines: list[str]) -> None:
    """Print JSON for a program, or lines for a person."""
    if arguments.json:
        lines = [ENCODER.encode(found).decode()]
    for line in lines:
        print(line)  # noqa: T201


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m consumers.receipts.dead",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(rides=[], all=False, dry_run=False)
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="all dead letters, except those that were dropped")
    showing = actions.add_parser("show", help="everything about one ride's receipt")
    showing.add_argument("rides", metavar="ID", nargs=1, type=ride_id)
    replaying = actions.add_parser("replay", help="have them sent again")
    replaying.add_argument("rides", metavar="ID", nargs="*", type=ride_id)
    replaying.add_argument("--all", action="store_true", help="every dead letter")
    dropping = actions.add_parser("drop", help="take them off the list, for good")
    dropping.add_argument("rides", metavar="ID", nargs="+", type=ride_id)
    for action in (replaying, dropping):
        action.add_argument("--dry-run", action="store_true", help="only say what would be done")
    for action in (listing, showing, replaying, dropping):
        action.add_argument("--json", action="store_true", help="for programs")
    arguments = parser.parse_args(words)
    if arguments.action == "replay" and bool(arguments.rides) == arguments.all:
        replaying.error("give the rides' ids, or --all")
    return arguments


def ride_id(text: str) -> int:
    """Check a ride's id. Raises argparse.ArgumentTypeError."""
    if text.isascii() and text.isdigit() and 0 < int(text[:20]) <= LARGEST_ID:
        return int(text)
    raise argparse.ArgumentTypeError("a ride's id is a number from 1 on")


def main() -> int:
    """Run the command, and return its exit status."""
    arguments = parse()
    config = settings.load()
    try:
        with database.connect(config.postgres_url, "dead letters") as connection:
            database.require_current_schema(connection)
            return run(connection, arguments)
    except (Unavailable, psycopg.Error) as reason:
        nobody = fleet.not_started(config.data_dir) if config.embedded_postgres else ""
        raise SystemExit(nobody or in_one_line(reason)) from None


if __name__ == "__main__":
    raise SystemExit(main())
