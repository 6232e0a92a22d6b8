"""`python -m consumers.rollup.aside list | retry`: the minutes that could not be computed.

`list` shows each with its reason. `retry` has the rollup try all of them again, within a second; a
minute that is right then leaves the list.
"""

import argparse

import psycopg

from consumers.rollup import set_aside
from consumers.rollup.minutes import SESSION
from rocket_rides import database, errors, settings
from rocket_rides.errors import Unavailable


def main() -> None:
    """List them, or ask for another attempt."""
    command = parse()
    try:
        with database.connect(settings.load().postgres_url, "aside", **SESSION) as connection:
            database.require_current_schema(connection)
            with connection.transaction():  # so that what is shown is not tried again meanwhile
                if command == "retry":
                    set_aside.ask(connection)
                show(set_aside.listed(connection))
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(errors.in_one_line(reason)) from None


def parse() -> str:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m consumers.rollup.aside",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="show them")
    commands.add_parser("retry", help="have the rollup try them again")
    command: str = parser.parse_args().command
    return command


def show(minutes: list[set_aside.SetAside]) -> None:
    """One line for each, with the minute as `GET /hours` shows it."""
    for minute in minutes:
        shown = minute.minute.replace(" ", "T").replace("+00", "Z")
        again = ", to be tried again" if minute.retry else ""
        print(  # noqa: T201
            f"{shown}  from ride {minute.lowest_ride_id} on,"
            f" {minute.attempts} attempts{again}: {minute.reason}"
        )
    if not minutes:
        print("no minute is set aside")  # noqa: T201


if __name__ == "__main__":
    main()
