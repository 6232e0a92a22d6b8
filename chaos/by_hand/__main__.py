"""`python -m chaos.by_hand WAY`: breaks the running fleet in one way, and shows how it heals.

Without a WAY it lists them. A frozen consumer always resumes, even after Ctrl-C or kill -9; Ctrl-Z
is ignored. Status 0 if every total is exact again, or if it says what is left for you to do. Status
1 if a total is not exact, or if the fleet could not be broken; one line says why.
"""

import argparse
import signal
import sys

import psutil
import psycopg
import redis

from chaos.by_hand.compared_totals import ComparedTotals
from chaos.by_hand.running_consumers import running_consumers
from chaos.by_hand.ways import WAYS, NotHealed, Target, show
from rocket_rides import database, settings
from rocket_rides.errors import Unavailable, in_one_line
from rocket_rides.log import Log
from rocket_rides.waiting import AN_HOUR

LATECOMER = """\
One more: a consumer that starts late heals everything that it missed (Ctrl-C ends it).
  .venv/bin/honcho run .venv/bin/python -m consumers latecomer"""


def main() -> None:
    """Break the fleet as the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m chaos.by_hand",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("way", nargs="?", choices=WAYS)
    parser.add_argument(
        "--any-server", action="store_true", help="also one named by DATABASE_URL or REDIS_URL"
    )
    parser.add_argument(
        "--seconds", type=seconds, default=5, help="how long to freeze it (default: %(default)s)"
    )
    given = parser.parse_args()
    if given.way is None:
        list_ways()
        return
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # Ctrl-Z would leave the consumer frozen
    # Like Ctrl-C. A frozen consumer resumes in any case.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        do(given.way, given.seconds, any_server=given.any_server)
    except (Unavailable, NotHealed, psycopg.Error, psutil.Error, redis.RedisError) as reason:
        raise SystemExit(in_one_line(reason)) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def seconds(text: str) -> float:
    if not 0 < (number := float(text)) <= AN_HOUR:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {AN_HOUR:.0f} seconds")
    return number


def list_ways() -> None:
    show("Ways to break the running fleet and watch it heal:")
    for name, way in WAYS.items():
        show(f"  make break ARGS={name:14}{way.summary}")
    show(LATECOMER)


def do(name: str, frozen_for: float, *, any_server: bool) -> None:
    """Break the fleet in the way `name`. Raises Unavailable, NotHealed and the servers' errors."""
    config, way = settings.load(), WAYS[name]
    given = {"DATABASE_URL": config.database_url, "REDIS_URL": config.redis_url}
    if given.get(way.server) and not any_server:
        raise Unavailable(
            f"{name} is for the embedded servers, but {way.server} names another one:"
            f" make break ARGS='{name} --any-server' breaks it anyway"
        )
    fleet = running_consumers(config)
    with (
        database.connect(config.postgres_url, "by hand") as connection,
        Log(config.log_url, config.stream_name) as log,
    ):
        database.require_current_schema(connection)
        totals = ComparedTotals(connection, [consumer.name for consumer in fleet])
        wrong = [each.name for each in totals.now() if each.total != each.exact]
        if way.heals and wrong:
            names = ", ".join(wrong)
            raise Unavailable(f"the total of {names} is already wrong: `make reconcile` repairs it")
        way.take(Target(fleet[-1], totals, connection, log, frozen_for))


if __name__ == "__main__":
    main()
