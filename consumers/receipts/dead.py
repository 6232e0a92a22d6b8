"""`python -m consumers.receipts.dead`: the receipts that were given up, for a person to decide on.

A receipt is a dead letter when its receiver refused it for good, or when RECEIPT_ATTEMPTS attempts
have failed. Nothing forgets it: it stays until it is delivered. `replay` marks it: a worker takes
it up within a second or so, with as many attempts as at first. `drop` takes it off the list, for
good. What can't be replayed or dropped is named, with the reason; the exit status is then 1.
"""

import argparse
from collections.abc import Sequence

import psycopg

from rocket_rides import fleet, revisions, settings
from unified_log import database
from unified_log.errors import Unavailable, in_one_line
from unified_log.process import Parser, show
from unified_log.words import count

LIST = """
    SELECT ride_id, distance, decided_at, attempts - excused, reason, replay_at IS NOT NULL
    FROM receipts JOIN rides ON rides.id = ride_id
    WHERE outcome = 'dead' AND dropped_at IS NULL ORDER BY ride_id
"""
WHY_NOT = """
    SELECT CASE WHEN outcome = 'delivered' THEN 'it was delivered'
                WHEN replay_at IS NOT NULL THEN 'it is being sent again already'
                WHEN dropped_at IS NOT NULL THEN 'it was dropped'
                ELSE 'it is not dead: it is being delivered' END
    FROM receipts WHERE ride_id = %s
"""
NO_ROW = "it is not in the queue yet, or there is no such ride"

# Both decide only about what still waits for it, so of two people, the second finds nothing to do.
# Rows are locked in the order of their rides, as everywhere.
#
# The attempts so far are kept, and no longer count towards the most that there may be. `outcome`
# stays: it is dead until it is decided anew.
REPLAY = """
    UPDATE receipts SET replay_at = now(), due_at = now(), excused = attempts
    WHERE ride_id = ANY(ARRAY(
        SELECT ride_id FROM receipts
        WHERE outcome = 'dead' AND replay_at IS NULL AND dropped_at IS NULL
          AND (%(all)s OR ride_id = ANY(%(rides)s))
        ORDER BY ride_id FOR NO KEY UPDATE
    )) RETURNING ride_id
"""
DROP = """
    UPDATE receipts SET dropped_at = now()
    WHERE ride_id = ANY(ARRAY(
        SELECT ride_id FROM receipts
        WHERE outcome = 'dead' AND replay_at IS NULL AND dropped_at IS NULL
          AND (%(all)s OR ride_id = ANY(%(rides)s))
        ORDER BY ride_id FOR NO KEY UPDATE
    )) RETURNING ride_id
"""
CHANGES = {"replay": (REPLAY, "to be sent again"), "drop": (DROP, "dropped")}


def letters(connection: psycopg.Connection) -> list[str]:
    """A line about each dead letter that was not dropped. Raises psycopg.Error."""
    return [
        f"ride {ride_id}, {distance} m, dead since {dead_at:%Y-%m-%dT%H:%M:%SZ}"
        f" after {count(attempts, 'attempt')}{' (to be sent again)' * is_replayed}: {reason}"
        for ride_id, distance, dead_at, attempts, reason, is_replayed in connection.execute(LIST)
    ]


def change(
    connection: psycopg.Connection, action: str, rides: Sequence[int], *, every: bool = False
) -> list[int]:
    """Replay or drop dead letters: all, or those of `rides`; returns the rides that it was done to.

    Raises psycopg.Error.
    """
    statement, _ = CHANGES[action]
    found = connection.execute(statement, {"all": every, "rides": list(rides)})
    return sorted(ride_id for (ride_id,) in found)


def run(connection: psycopg.Connection, arguments: argparse.Namespace) -> int:
    """Do what the command line says; returns the exit status. Raises psycopg.Error."""
    refused: list[int] = []
    if arguments.action == "list":
        lines = letters(connection)
    else:
        done = change(connection, arguments.action, arguments.rides, every=arguments.all)
        refused = sorted({*arguments.rides} - {*done})
        _, what = CHANGES[arguments.action]
        lines = [f"ride {ride_id}: {what}" for ride_id in done]
        for ride_id in refused:
            [why] = connection.execute(WHY_NOT, [ride_id]).fetchone() or [NO_ROW]
            lines.append(f"ride {ride_id}: not done: {why}")
    show(lines or ["no dead letters"])
    return 1 if refused else 0


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = Parser("python -m consumers.receipts.dead", __doc__)
    parser.add_argument("action", choices=["list", *CHANGES])
    parser.add_argument("rides", metavar="ID", nargs="*", type=int, help="a ride's id")
    parser.add_argument("--all", action="store_true", help="replay every dead letter")
    given = parser.parse_args(words)
    fits = {
        "list": not given.rides and not given.all,
        "replay": bool(given.rides) != given.all,
        "drop": bool(given.rides) and not given.all,
    }
    if not fits[given.action]:
        parser.error("say `list`; or `replay` with rides' ids or --all; or `drop` with rides' ids")
    return given


def main() -> int:
    """Run the command, and return its exit status."""
    arguments = parse()
    config = settings.load()
    try:
        with database.connect(config.postgres_url, "dead letters") as connection:
            revisions.require_schema(connection, config.cell)
            return run(connection, arguments)
    except (Unavailable, psycopg.Error) as reason:
        nobody = fleet.not_started(config.data_dir) if config.embedded_postgres else ""
        raise SystemExit(nobody or in_one_line(reason)) from None


if __name__ == "__main__":
    raise SystemExit(main())
