"""`python -m lab.benchmarks [NAMES...]`: measure, and write the figures into the docs.

Each part runs on its own temporary Postgres and Redis, as durable as the fleet's. Figures are
medians of several runs, with the lowest and the highest; each run's limit is measured right after
it. Run it on an otherwise idle machine: it takes some ten minutes.

Each part is written into the docs as soon as it is over, so it stays, whatever ends the run later.
A part that fails is named at the end, and its older figures stay.
"""

import argparse
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import psutil

from demo.embedded import stock
from demo.embedded.failures import NeverStarts
from lab.benchmarks import (
    backlog,
    consume,
    docs,
    drain,
    idle,
    latency,
    nights,
    post,
    receipts,
    setup,
)
from lab.benchmarks.figures import COLUMNS, Figure
from lab.benchmarks.stand import Stand, say, stand
from lab.blocks import table

Measure = Callable[[Stand], Sequence[Figure]]

PARTS: dict[str, Measure] = {
    "post": post.measure,
    "drain": drain.measure,
    "consume": consume.measure,
    "backlog": backlog.measure,
    "latency": latency.measure,
    "receipts": receipts.measure,
    "idle": idle.measure,
    "nights": nights.measure,
    "setup": setup.measure,
}
BUSY = 10.0  # percent of all cores that other processes may take when a part begins
LOOK = 1.0  # seconds over which that is measured
GIBIBYTE = 2**30


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
    # As on Ctrl-C, end the servers and services first.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    parts = {name: PARTS[name] for name in arguments.names or PARTS}
    if failed := run(parts, into_docs=not arguments.print):
        sys.exit(f"failed: {', '.join(failed)}")


def run(parts: Mapping[str, Measure], *, into_docs: bool) -> list[str]:
    """Measure all of them, and print their tables; returns the names of those that failed."""
    failed = []
    for number, (name, measure) in enumerate(parts.items(), 1):
        say(f"[{number}/{len(parts)}] {name}")
        try:
            told = measured(measure)
        except Exception:
            say(f"{name} failed:\n{traceback.format_exc()}")
            failed.append(name)
            continue
        print(f"\n## {name}\n\n{told}\n", flush=True)
        if into_docs:
            docs.record(name, told)
    return failed


def measured(measure: Measure) -> str:
    """Measure a part on a stand of its own; returns its table, with where and when."""
    busy = psutil.cpu_percent(LOOK)
    began = time.monotonic()
    with stand() as servers:
        on = machine(servers.versions())
        figures = measure(servers)
    took = time.monotonic() - began
    told = f"Measured on {datetime.now().astimezone().date()} in {took:.0f} s, on {on}."
    if busy >= BUSY:
        told += f" **Others took {busy:.0f} % of the machine**: these figures are not reliable."
        say(told)
    return f"{told}\n\n{shown(figures)}"


def shown(figures: Sequence[Figure]) -> str:
    return table(COLUMNS, (figure.cells() for figure in figures))


def machine(versions: Sequence[str]) -> str:
    """The size of this machine, and the versions of what runs on it."""
    memory = round(psutil.virtual_memory().total / GIBIBYTE)
    python = f"Python {platform.python_version()}"
    return ", ".join([f"{os.cpu_count()} cores, {memory} GB", python, *versions])


if __name__ == "__main__":
    main()
