"""`python -m benchmarks [NAMES...]`: measure, and print a Markdown table.

Each part runs on its own temporary Postgres and Redis, as durable as the fleet's. Figures are
medians of several runs, with the lowest and the highest; each run's limit is measured right after
it. Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time
from pathlib import Path

from benchmarks import (
    consume,
    drain,
    figures,
    groups,
    idle,
    latency,
    post,
    receipts,
    reconcile,
    rollup,
    watch,
)
from benchmarks.stand import stand

PARTS = {
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    # Like Ctrl-C: the servers and services end first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    measured: list[figures.Figure] = []
    for name in arguments.names or PARTS:
        started = time.monotonic()
        with stand() as servers:
            measured += PARTS[name](servers)
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(figures.table(measured))
    if arguments.json:
        arguments.json.write_text(json.dumps([f.as_json() for f in measured], indent=2) + "\n")


if __name__ == "__main__":
    main()
