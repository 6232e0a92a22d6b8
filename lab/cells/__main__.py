"""`python -m lab.cells`: two cells behind the router, broken one fault after another, under load.

Each cell (Postgres, Redis, an API, a streamer, a total, a rollup), the router and the clients have
a host of their own: a network namespace. Cells are killed, cut off and restored from a backup, and
the router is killed, in an order that the seed determines; slots move back and forth meanwhile, and
moves are killed, too. In the end every request is accounted for, over both cells.

Status 0: no ride was lost or taken twice, except for what a restore had to undo. Status 1: there is
a line for each finding, and the folder of the logs is kept. Ctrl-C ends a drill with status 130,
SIGTERM with 143; it leaves no processes, namespaces or files. SIGKILL leaves a folder of logs.
"""

import argparse
import os
import random
import sys

import psycopg

from demo.embedded.failures import NeverStarts, ServerFailed
from lab.arguments import positive
from lab.cells.books import check
from lab.cells.drill import Drill
from lab.cells.outcome import table
from lab.chaos.machines import enter_own_namespace
from lab.haproxy import HAPROXY
from lab.network import IP
from lab.stage import Place, stage
from unified_log.errors import Unavailable
from unified_log.process import Parser


def main() -> int:
    """Return 0 if every request is accounted for, else 1."""
    options = arguments()
    if lacks := missing():
        raise SystemExit(f"the drill needs {lacks}")
    with stage("cells", Place) as place:
        try:
            enter_own_namespace()  # for the servers' disks
            drill = Drill(place.folder, options.seed, options.rate)
            place.exits.callback(drill.stop)
            print(f"seed {options.seed}", flush=True)
            books = drill.run(options.seconds)
        except NeverStarts as reason:
            raise SystemExit(str(reason)) from None
        except (ServerFailed, TimeoutError, Unavailable, psycopg.Error) as reason:
            print(f"{reason}; the logs are in {place.folder}", file=sys.stderr)
            return 1
        findings = check(books)
        place.keep = bool(findings)
        print(table(drill, books))
        for finding in findings:
            print(f"BROKEN: {finding}")
        if findings:
            print(f"{len(findings)} findings; the logs are in {place.folder}")
        else:
            print("every request is accounted for")
        return int(place.keep)


def missing() -> str:
    """What this machine lacks; empty if nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "root, on Linux: it makes network namespaces"
    if HAPROXY is None:
        return "HAProxy, such as by `apt install haproxy`"
    if IP is None:
        return "the program ip, such as by `apt install iproute2`"
    return ""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = Parser("python -m lab.cells", __doc__)
    add = parser.add_argument
    new = random.randrange(2**32)
    add("--seed", type=int, default=new, help="the order of faults (default: a new one)")
    late = (
        "seconds after which no new fault begins, once each kind has struck (default: %(default)g)"
    )
    add("--seconds", type=positive, default=60, help=late)
    add(
        "--rate", type=positive, default=80, help="requests a second, in all (default: %(default)g)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
