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
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import psycopg

from demo.embedded.failures import NeverStarts, ServerFailed
from lab.arguments import positive
from lab.cells.books import check
from lab.cells.drill import Drill
from lab.cells.outcome import table
from lab.chaos.machines import enter_own_namespace
from lab.haproxy import HAPROXY
from lab.network import IP
from unified_log.errors import Unavailable
from unified_log.process import Parser

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """Return 0 if every request is accounted for, else 1."""
    options = arguments()
    if lacks := missing():
        raise SystemExit(f"the drill needs {lacks}")
    # SIGINT too: a shell has the programs that it starts in the background ignore it.
    for each in SIGNALS:
        signal.signal(each, lambda number, _: sys.exit(128 + number))
    # In /tmp: paths of sockets must be short, and the servers' user must be able to enter.
    folder = Path(tempfile.mkdtemp(prefix="cells-", dir="/tmp"))
    folder.chmod(0o755)
    drill, keep = None, True
    try:
        enter_own_namespace()  # for the servers' disks
        drill = Drill(folder, options.seed, options.rate)
        print(f"seed {options.seed}", flush=True)
        books = drill.run(options.seconds)
        findings = check(books)
        print(table(drill, books))
        keep = bool(findings)
    except NeverStarts as reason:
        keep = False
        raise SystemExit(str(reason)) from None
    except (ServerFailed, TimeoutError, Unavailable, psycopg.Error) as reason:
        print(f"{reason}; the logs are in {folder}", file=sys.stderr)
        return 1
    except SystemExit:  # by a signal
        keep = False
        raise
    finally:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        if drill:
            drill.stop()
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    for finding in findings:
        print(f"BROKEN: {finding}")
    if findings:
        print(f"{len(findings)} findings; the logs are in {folder}")
    else:
        print("every request is accounted for")
    return int(keep)


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
