"""`python -m lab.chaos`: a whole fleet, a nemesis that breaks it at random, and the proof.

It starts its own fleet on private servers: Postgres, Redis and its replica, an API, two streamers,
three totals, two rollups, a consumer of ratings and two workers for receipts. Clients post and rate
rides until they are answered; some stop half-way. Meanwhile a nemesis injects the faults that
`--faults` names, as the seed determines. Where there is Spark, the nightly job runs again and
again. Then all faults are undone, the fleet settles, what the job believes is tampered with, and
every ride is checked.

Status 0: no ride was lost, counted twice or out of order, and nothing else was wrong, except for
what a restore had to undo. Status 1: there is a line for each finding, and the folder of the logs
is kept. Ctrl-C ends a run with status 130, SIGTERM with 143; it leaves no processes or files.
"""

import argparse
import random
import shlex
import signal
import sys

import psycopg

from demo.embedded import stock
from demo.embedded.failures import NeverStarts, ServerFailed
from demo.embedded.stream_servers import STREAM_SERVERS
from lab.arguments import positive
from lab.chaos.faults import FAULTS
from lab.chaos.fleet import RATE, Fleet
from lab.chaos.machines import enter_own_namespace
from lab.chaos.nemesis import EVERY
from lab.chaos.outcome import judged
from lab.chaos.play import Play
from unified_log.errors import Unavailable
from unified_log.process import Parser

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """Return 0 if every ride counted once, else 1."""
    options = arguments()
    print(f"seed {options.seed}", flush=True)
    # SIGINT too: a shell has the programs that it starts in the background ignore it.
    for each in SIGNALS:
        signal.signal(each, lambda number, _: sys.exit(128 + number))
    try:
        stock.require()
        fleet = Fleet(STREAM_SERVERS[options.stream_server], disks=enter_own_namespace())
    except NeverStarts as reason:
        raise SystemExit(str(reason)) from None
    keep = True
    try:
        fleet.start()
        play = Play(fleet, options)
        play.run()
        findings, table = judged(play)
        keep = bool(findings)
    except (ServerFailed, TimeoutError, Unavailable, psycopg.Error) as reason:
        print(f"{reason}; the logs are in {fleet.folder}", file=sys.stderr)
        return 1
    except SystemExit:  # by a signal
        keep = False
        raise
    finally:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        fleet.stop(keep=keep)
    print(table)
    for finding in findings:
        print(f"BROKEN: {finding}")
    if findings:
        seed = [] if "--seed" in sys.argv else ["--seed", str(options.seed)]
        again = f"python -m lab.chaos {shlex.join(seed + sys.argv[1:])}"
        print(f"{len(findings)} findings; {again}; the logs are in {fleet.folder}")
    return int(keep)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = Parser("python -m lab.chaos", __doc__)

    def number(name: str, default: float, meaning: str) -> None:
        shown = f"{meaning} (default: {default:g})"
        parser.add_argument(name, type=positive, default=default, help=shown)

    add = parser.add_argument
    new = random.randrange(2**32)
    add("--seed", type=int, default=new, help="repeat an earlier plan (default: a new one)")
    number("--seconds", 100, "duration of the faults; start and end take some 20 seconds more")
    number("--rate", RATE, "rides a second")
    number("--every", EVERY, "seconds from one fault to the next, on average")
    number("--recovery", 10, "seconds that totals may take to catch up after the last fault")
    kinds = f"only these: {', '.join(FAULTS)}"
    add("--faults", nargs="+", choices=FAULTS, default=[*FAULTS], metavar="FAULT", help=kinds)
    server = "what holds the log: Valkey 9.1 or Redis 6.2 (default: %(default)s)"
    add("--stream-server", choices=STREAM_SERVERS, default="valkey", help=server)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
