"""`python -m benchmarks [NAMES...]`: measure, and write the figures into the docs.

Each part runs on its own temporary Postgres and Redis, as durable as the fleet's. Figures are
medians of several runs, with the lowest and the highest; each run's limit is measured right after
it. Run it on an otherwise idle machine: it takes about twenty minutes.
"""

import argparse
import signal
import sys

from benchmarks import (
    consume,
    drain,
    groups,
    idle,
    latency,
    post,
    receipts,
    reconcile,
    rollup,
    watch,
)
from benchmarks.running import Measure, run

PARTS: dict[str, Measure] = {
    "post": post.measure,
    "drain": drain.measure,
    "consume": consume.measure,
    "latency": latency.measure,
    "receipts": receipts.measure,
    "idle": idle.measure,
    "groups": groups.measure,
    "reconcile": reconcile.measure,
    "rollup": rollup.measure,
    "watch": watch.measure,
}


def main() -> None:
    """Run the parts NAMES, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--print", action="store_true", help="leave the docs as they are")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    # Like Ctrl-C: the servers and services end first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    parts = {name: PARTS[name] for name in arguments.names or PARTS}
    if failed := run(parts, into_docs=not arguments.print):
        sys.exit(f"failed, and left in the docs as before: {', '.join(failed)}")


if __name__ == "__main__":
    main()
