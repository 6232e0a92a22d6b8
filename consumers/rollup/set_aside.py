"""`python -m consumers.rollup.set_aside list | retry`: the minutes that could not be computed.

`list` shows each with its reason. `retry` has the rollup try all of them again, one in each round,
beginning within a second; a minute that can be computed then leaves the list.
"""

import psycopg

from consumers.rollup import set_aside_minutes
from consumers.rollup.minutes import SESSION
from consumers.rollup.set_aside_minutes import SetAsideMinute
from rocket_rides import revisions, settings
from unified_log import database, errors
from unified_log.errors import Unavailable
from unified_log.process import Parser, show


def main() -> None:
    """List them, or ask for another attempt at all of them."""
    parser = Parser("python -m consumers.rollup.set_aside", __doc__)
    parser.add_argument("command", choices=("list", "retry"))
    command = parser.parse_args().command
    config = settings.load()
    try:
        with database.connect(config.postgres_url, "set aside", **SESSION) as connection:
            revisions.require_schema(connection, config.cell)
            # In one transaction, so that the rollup takes the requests after they were listed here.
            with connection.transaction():
                if command == "retry":
                    set_aside_minutes.ask(connection)
                minutes = set_aside_minutes.listed(connection)
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(errors.in_one_line(reason)) from None
    show(map(line, minutes) if minutes else ["no minute is set aside"])


def line(minute: SetAsideMinute) -> str:
    """What is known of one, with the minute as `GET /hours` shows it."""
    shown = minute.minute.replace(" ", "T").replace("+00", "Z")
    again = ", to be tried again" if minute.retry else ""
    return (
        f"{shown}  from ride {minute.lowest_ride_id} on,"
        f" {minute.attempts} attempts{again}: {minute.reason}"
    )


if __name__ == "__main__":
    main()
