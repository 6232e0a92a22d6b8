"""`python -m lab.benchmarks [NAMES...]`: measure, and write the figures into the docs.

Each part runs on its own temporary Postgres and Redis, as durable as the fleet's. Figures are
medians of several runs, with the lowest and the highest; each run's limit is measured right after
it. Run it on an otherwise idle machine: it takes some ten minutes.

Each part is in the docs as soon as it is over: whatever ends the run, what was measured before
stays. A part that fails is named at the end, and its older figures stay.
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
from lab.benchmarks.figures import Figure, table
from lab.benchmarks.stand import Stand, say, stand

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
BUSY = 10.0  # percent of all cores: what others may take before a part begins
LOOK = 1.0  # seconds that are looked at
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
    # Like Ctrl-C: the servers and services end first.
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
            docs.write(name, told)
    return failed


def measured(measure: Measure) -> str:
    """What a part measured on a stand of its own, and under what circumstances."""
    busy = psutil.cpu_percent(LOOK)
    if doubtful := busy >= BUSY:
        say(f"others take {busy:.0f} % of the machine: what is measured now says little")
    began = time.monotonic()
    with stand() as servers:
        on = machine(servers.versions())
        figures = measure(servers)
    took = time.monotonic() - began
    told = f"Measured on {datetime.now().astimezone().date()} in {took:.0f} s, on {on}."
    if doubtful:
        others = f"When it began, others took {busy:.0f} % of the machine"
        told += f" **{others}**: these figures say little."
    return f"{told}\n\n{table(figures, doubtful=doubtful)}"


def machine(versions: Sequence[str]) -> str:
    """In general words: its size, and the versions of what runs on it."""
    memory = round(psutil.virtual_memory().total / GIBIBYTE)
    python = f"Python {platform.python_version()}"
    return ", ".join([f"{os.cpu_count()} cores, {memory} GB", python, *versions])


if __name__ == "__main__":
    main()
