"""`python -m lab.benchmarks [NAMES...]`: measure, and write the figures into the docs.

Each part runs on its own temporary Postgres and Redis, as durable as the fleet's. Figures are
medians of several runs, with the lowest and the highest; each run's limit is measured right after
it. Run it on an otherwise idle machine: it may take twenty minutes, and says so if it takes longer.
"""

import argparse
import contextlib
import math
import signal
import sys
from functools import partial

from demo.embedded import stock
from demo.embedded.failures import NeverStarts
from lab.benchmarks import (
    backlog,
    cluster,
    consume,
    drain,
    groups,
    hosts,
    idle,
    latency,
    memory,
    nights,
    post,
    receipts,
    reconcile,
    rollup,
    setup,
    watch,
)
from lab.benchmarks.running import Measure, run

PARTS: dict[str, Measure] = {
    "post": post.measure,
    "hosts": hosts.measure,
    "drain": drain.measure,
    "consume": consume.measure,
    "backlog": backlog.measure,
    "latency": latency.measure,
    "receipts": receipts.measure,
    "idle": idle.measure,
    "memory": memory.measure,
    "groups": groups.measure,
    "reconcile": reconcile.measure,
    "nights": nights.measure,
    "rollup": rollup.measure,
    "watch": watch.measure,
    "setup": setup.measure,
}
# These run only if they are named.
HOUR, CLUSTER = "hour", "cluster"
LEAST_MINUTES, MOST_MINUTES = 0.5, 24 * 60.0
AT_MOST = 20 * 60.0  # seconds that all parts may take


def main() -> None:
    """Run the parts NAMES, or all."""
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(PARTS)}; {HOUR}, {CLUSTER}"
    )
    parser.add_argument("--print", action="store_true", help="leave the docs as they are")
    parser.add_argument(
        "--minutes", type=long_enough, default=memory.AN_HOUR, help=f"of {HOUR}; by default 60"
    )
    arguments = parser.parse_args()
    if arguments.minutes != memory.AN_HOUR and HOUR not in arguments.names:
        parser.error(f"--minutes is about {HOUR}, which runs only if it is named")
    hour = partial(memory.hour, minutes=arguments.minutes)
    known = PARTS | {HOUR: hour, CLUSTER: cluster.measure}
    if unknown := set(arguments.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the parts are {', '.join(known)}")
    try:
        stock.require()
    except NeverStarts as reason:
        parser.error(str(reason))
    # Like Ctrl-C: the servers and services end first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    parts = {name: known[name] for name in arguments.names or PARTS}
    at_most = math.inf if arguments.names else AT_MOST
    expected = {HOUR: 60 * arguments.minutes}
    if failed := run(parts, into_docs=not arguments.print, at_most=at_most, expected=expected):
        sys.exit(f"failed: {', '.join(failed)}")


def long_enough(text: str) -> float:
    """So many minutes. Raises argparse.ArgumentTypeError."""
    with contextlib.suppress(ValueError):
        if LEAST_MINUTES <= (minutes := float(text)) <= MOST_MINUTES:
            return minutes
    raise argparse.ArgumentTypeError(f"{LEAST_MINUTES:g} to {MOST_MINUTES:g} minutes")


if __name__ == "__main__":
    main()
