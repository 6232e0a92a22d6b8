"""`python -m lab.benchmarks [NAMES...]`: measure, and write the figures into the docs.

Each part runs on its own temporary Postgres and Redis, as durable as the fleet's. Figures are
medians of several runs, with the lowest and the highest; each figure's limit is measured beside it,
in the same part. Run it on an otherwise idle machine: it takes some 20 minutes.

Each part is written into the docs as soon as it is over. Where one waits in vain, its older figures
stay, and the rest goes on; the exit status is 1 then.
"""

import os
import platform
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import import_module

import psutil

from demo.embedded import stock
from demo.embedded.failures import NeverStarts
from lab.benchmarks import docs
from lab.benchmarks.figures import COLUMNS, Figure, Table
from lab.benchmarks.stand import Stand, stand
from lab.blocks import table
from lab.progress import say
from unified_log.process import Parser

Measure = Callable[[Stand], Sequence[Figure | Table]]

# Each is a module, which has a function `measure`.
PARTS = ["post", "drain", "consume", "backlog", "latency", "receipts", "idle", "nights", "setup"]
PARTS += ["late", "feed", "groups"]
PARTS += ["cells"]  # which need HAProxy
BUSY = 10.0  # percent of all cores that other processes may take when a part begins
LOOK = 1.0  # seconds over which that is measured
GIBIBYTE = 2**30


def main() -> None:
    parser = Parser("python -m lab.benchmarks", __doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PARTS))
    names = parser.parse_args().names or PARTS
    if unknown := set(names) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    try:
        stock.require()
    except NeverStarts as reason:
        parser.error(str(reason))
    for number in (signal.SIGINT, signal.SIGTERM):  # end the servers and services first
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    parts = {name: import_module(f"lab.benchmarks.{name}").measure for name in names}
    if failed := [name for name, measure in parts.items() if not run(name, measure)]:
        sys.exit(f"not measured, so their figures are the older ones: {', '.join(failed)}")


def run(name: str, measure: Measure) -> bool:
    """Measure a part and write it into the docs; False, and a line that says why, if it can't."""
    say(name)
    try:
        told = measured(measure)
    except (NeverStarts, TimeoutError) as reason:
        say(f"{name}: {reason}")
        return False
    print(f"\n## {name}\n\n{told}\n", flush=True)
    docs.record(name, told)
    return True


def measured(measure: Measure) -> str:
    """Measure a part on a stand of its own; returns its table, with where and when."""
    busy = psutil.cpu_percent(LOOK)
    with stand() as servers:
        on = machine(servers.versions())
        figures = measure(servers)
    told = f"{datetime.now().astimezone().date()}, {on}."
    if busy >= BUSY:
        told += f" **Other processes took {busy:.0f} % of the machine**:"
        told += " these figures are not reliable."
        say(told)
    return f"{told}\n\n{shown(figures)}"


def shown(told: Sequence[Figure | Table]) -> str:
    figures = (each.cells() for each in told if isinstance(each, Figure))
    others = (table(*each) for each in told if isinstance(each, Table))
    return "\n\n".join([table(COLUMNS, figures), *others])


def machine(versions: Sequence[str]) -> str:
    memory = round(psutil.virtual_memory().total / GIBIBYTE)
    python = f"Python {platform.python_version()}"
    return ", ".join([f"{os.cpu_count()} cores, {memory} GB", python, *versions])


if __name__ == "__main__":
    main()
