"""`python -m rocket_rides.health NAME`: is the process NAME at work? For health checks.

A streamer or a consumer is at work while it has a session with Postgres, which it names after
itself; it gives the session up whenever one of its servers is away. Status 0 when there is one.
"""

import argparse

from rocket_rides import database, settings
from rocket_rides.process import Unavailable

SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"


def main() -> int:
    """Return 0 when a process of that name has a session, else 1."""
    parser = argparse.ArgumentParser(prog="python -m rocket_rides.health", description=__doc__)
    parser.add_argument("name", help="streamer, or a consumer's name")
    name = parser.parse_args().name
    try:
        with database.connect(settings.load().postgres_url, "health") as connection:
            return int(connection.execute(SESSIONS, [name]).fetchone() == (0,))
    except Unavailable as reason:
        raise SystemExit(str(reason)) from None


if __name__ == "__main__":
    raise SystemExit(main())
