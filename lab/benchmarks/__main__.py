"""`python -m lab.benchmarks [NAMES...]`: measure, and write the figures into the docs.

Each part runs on its own temporary Postgres and Redis, as durable as the fleet's. Figures are
medians of several runs, with the lowest and the highest; each run's limit is measured right after
it. Run it on an otherwise idle machine: it may take twenty minutes, and says so if it takes longer.
"""

import argparse
import math
import signal
import sys

from demo.embedded import stock
from demo.embedded.failures import NeverStarts
from lab.benchmarks import (
    backlog,
    consume,
    drain,
    idle,
    latency,
    nights,
    post,
    receipts,
    reconcile,
    setup,
)
from lab.benchmarks.running import Measure, run

PARTS: dict[str, Measure] = {
    "post": post.measure,
    "drain": drain.measure,
    "consume": consume.measure,
    "backlog": backlog.measure,
    "latency": latency.measure,
    "receipts": receipts.measure,
    "idle": idle.measure,
    "reconcile": reconcile.measure,
    "nights": nights.measure,
    "setup": setup.measure,
}
AT_MOST = 20 * 60.0  # seconds that all parts may take


def main() -> None:
    """Run the parts NAMES, or all."""
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--print", action="store_true", help="leave the docs as they are")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    try:
        stock.require()
    except NeverStarts as reason:
        parser.error(str(reason))
    # Like Ctrl-C: the servers and services end first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    parts = {name: PARTS[name] for name in arguments.names or PARTS}
    at_most = math.inf if arguments.names else AT_MOST
    if failed := run(parts, into_docs=not arguments.print, at_most=at_most):
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
