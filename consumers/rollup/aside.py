"""`python -m consumers.rollup.aside list | retry`: the minutes that could not be computed.

`list` shows each with its reason. `retry MINUTE...` and `retry --all` have the rollup try them
again, within a second; a minute that is right then leaves the list.
"""

import argparse
import json
from datetime import datetime

import psycopg

from consumers.rollup import set_aside
from consumers.rollup.minutes import SESSION
from consumers.rollup.set_aside import SetAside
from rocket_rides import database, errors, settings
from rocket_rides.errors import Unavailable


def main() -> None:
    """List them, or ask for another attempt. Exits with 1 when a minute named is not among them."""
    arguments = parse()
    try:
        with database.connect(settings.load().postgres_url, "aside", **SESSION) as connection:
            database.require_current_schema(connection)
            if arguments.command == "list":
                show(set_aside.listed(connection), as_json=arguments.json)
            else:
                retry(connection, arguments.minutes, every=arguments.all)
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(errors.in_one_line(reason)) from None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m consumers.rollup.aside",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="show them")
    listing.add_argument("--json", action="store_true", help="one JSON object a line")
    again = commands.add_parser("retry", help="have the rollup try them again")
    again.add_argument("minutes", nargs="*", metavar="MINUTE", help="as the list shows it")
    again.add_argument("--all", action="store_true", help="every one")
    arguments = parser.parse_args()
    if arguments.command == "retry" and bool(arguments.minutes) == arguments.all:
        parser.error("name minutes, or else --all")
    return arguments


def show(minutes: list[SetAside], *, as_json: bool) -> None:
    """One line for each."""
    for minute in minutes:
        if as_json:
            fields = minute._asdict() | {"minute": as_shown(minute.minute)}
            print(json.dumps(fields, default=datetime.isoformat))  # noqa: T201
        else:
            again = ", to be tried again" if minute.retry else ""
            print(  # noqa: T201
                f"{as_shown(minute.minute)}  from ride {minute.lowest_ride_id} on,"
                f" {minute.attempts} attempts{again}: {minute.reason}"
            )
    if not minutes and not as_json:
        print("no minute is set aside")  # noqa: T201


def as_shown(minute: str) -> str:
    """A minute as `GET /hours` shows it, from how Postgres writes it in UTC."""
    return minute.replace(" ", "T").replace("+00", "Z")


def retry(connection: psycopg.Connection, minutes: list[str], *, every: bool) -> None:
    """Ask for another attempt at these. Raises SystemExit when one is not set aside."""
    asked, missing = set_aside.ask(connection, minutes, every=every)
    for minute in asked:
        print(f"{as_shown(minute)} will be tried again")  # noqa: T201
    if missing:
        raise SystemExit(f"not set aside: {', '.join(missing)}")
    if not asked:
        print("no minute is set aside")  # noqa: T201


if __name__ == "__main__":
    main()
