"""Runs parts one after another, each on servers of its own, and records what they measured.

Each part is on record, and in the docs, as soon as it is over: whatever ends the run, what was
measured before stays. A part that fails is named at the end. Its older entry stays, marked as
failed, like that of a part that this machine can't measure: what it met, it may no longer meet.
"""

import contextlib
import math
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from cluster.network import NoHosts
from lab.benchmarks import docs, record
from lab.benchmarks.figures import Figure, Table
from lab.benchmarks.progress import Progress
from lab.benchmarks.record import BUSY, Entry
from lab.benchmarks.stand import CannotMeasure, Stand, stand
from rocket_rides.settings import PROJECT

LONGEST = 200  # characters of a reason

Measure = Callable[[Stand], Sequence[Figure | Table]]


def run(
    parts: Mapping[str, Measure],
    *,
    into_docs: bool,
    at_most: float = math.inf,
    expected: Mapping[str, float] | None = None,
) -> list[str]:
    """Measure all of them, and print their tables; returns the names of those that failed.

    A part is `expected` to take so many seconds, or as many as the last time. Says at the end how
    long it took, and whether that is more than `at_most` seconds.
    """
    took = {name: entry.seconds for name, entry in record.load().items()}
    progress = Progress([*parts], {**took, **(expected or {})})
    failed = []
    began = time.monotonic()
    try:
        for name, measure in parts.items():
            with progress.part(name):
                try:
                    entry = measured(measure, progress)
                except (CannotMeasure, NoHosts) as reason:
                    progress.say(f"{name} is left out: {reason}")
                    if into_docs:
                        mark_as_failed(name, reason)
                    continue
                except Exception as reason:
                    progress.say(f"{name} failed:\n{traceback.format_exc()}")
                    failed.append(name)
                    if into_docs:
                        mark_as_failed(name, reason)
                    continue
            progress.say(f"\n## {name}\n\n{docs.part(entry)}\n", sys.stdout)
            if into_docs:
                with recorded() as entries:
                    entries[name] = entry
    finally:
        progress.close()
    took_all = time.monotonic() - began
    much = f", more than the {minutes(at_most)} that they may take" if took_all > at_most else ""
    print(f"{docs.several(len(parts), 'part')} took {minutes(took_all)}{much}", file=sys.stderr)
    return failed


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, Entry]]:
    """What is on record, to be changed; the docs show the change. Another run waits meanwhile."""
    with record.locked():
        entries = record.load()
        yield entries
        record.save(entries)
        docs.write(record.load())


def mark_as_failed(name: str, reason: Exception) -> None:
    """Say so in the part's entry, if it has one; without this machine's folders."""
    why = f"{type(reason).__name__}: {reason}".replace(f"{PROJECT}/", "")
    why = textwrap.shorten(why, LONGEST)
    with recorded() as entries:
        if name in entries:
            entries[name] = replace(entries[name], failed=f"{today()}: {why}")


def measured(measure: Measure, progress: Progress) -> Entry:
    """Let a part measure, on a stand of its own."""
    busy = record.busy()
    if busy >= BUSY:
        progress.say(f"others take {busy:.0f} % of the machine: what is measured now says little")
    began = time.monotonic()
    with stand(progress.doing) as servers:
        machine = record.machine(servers.versions())
        told = measure(servers)
    return Entry(
        date=today(),
        seconds=time.monotonic() - began,
        machine=machine,
        busy=busy,
        figures=[each for each in told if isinstance(each, Figure)],
        tables=[each for each in told if isinstance(each, Table)],
    )


def today() -> str:
    return datetime.now().astimezone().date().isoformat()


def minutes(seconds: float) -> str:
    """Rounded up, so that what took too long is never said to have kept a bound."""
    return f"{math.ceil(seconds / 6) / 10:.1f} minutes"
