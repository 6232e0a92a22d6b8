"""Runs parts one after another, each on servers of its own, and records what they measured.

Each part is on record, and in the docs, as soon as it is over: whatever ends the run, what was
measured before stays. A part that fails is named at the end, and its older entry stays.
"""

import math
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from lab.benchmarks import docs, record
from lab.benchmarks.figures import Figure
from lab.benchmarks.record import BUSY, Entry
from lab.benchmarks.stand import Stand, stand

Measure = Callable[[Stand], Sequence[Figure]]


def run(parts: Mapping[str, Measure], *, into_docs: bool, at_most: float = math.inf) -> list[str]:
    """Measure all of them, and print their tables; returns the names of those that failed.

    Says at the end how long it took, and whether that is more than `at_most` seconds.
    """
    failed = []
    began = time.monotonic()
    for number, (name, measure) in enumerate(parts.items(), 1):
        last = record.load().get(name)
        took = f", which took {minutes(last.seconds)} the last time" if last else ""
        say(f"[{number}/{len(parts)}] {name}{took}")
        try:
            entry = measured(measure)
        except Exception:
            say(f"{name} failed:\n{traceback.format_exc()}")
            failed.append(name)
            continue
        print(f"\n## {name}\n\n{docs.part(entry)}\n", flush=True)
        if into_docs:
            entries = record.load() | {name: entry}
            record.save(entries)
            docs.write(entries)
    took_all = time.monotonic() - began
    much = f", more than the {minutes(at_most)} that they may take" if took_all > at_most else ""
    say(f"{docs.several(len(parts), 'part')} took {minutes(took_all)}{much}")
    return failed


def measured(measure: Measure) -> Entry:
    """Let a part measure, on a stand of its own."""
    busy = record.busy()
    if busy >= BUSY:
        say(f"others take {busy:.0f} % of the machine: what is measured now says little")
    began = time.monotonic()
    with stand(lambda what: say(f"  {what}")) as servers:
        machine = record.machine(servers.versions())
        figures = measure(servers)
    today = datetime.now().astimezone().date().isoformat()
    return Entry(today, time.monotonic() - began, machine, busy, [*figures])


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def minutes(seconds: float) -> str:
    """Rounded up, so that what took too long is never said to have kept a bound."""
    return f"{math.ceil(seconds / 6) / 10:.1f} minutes"
