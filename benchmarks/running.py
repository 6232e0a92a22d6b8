"""Runs parts one after another, each on servers of its own, and records what they measured.

Each part is on record, and in the docs, as soon as it is over: whatever ends the run, what was
measured before stays. A part that fails is named at the end; its older entry stays as it was.
"""

import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from benchmarks import docs, record
from benchmarks.figures import Figure, Table
from benchmarks.progress import Progress, duration
from benchmarks.record import BUSY, Entry
from benchmarks.stand import CannotMeasure, Stand, stand

Measure = Callable[[Stand], Sequence[Figure | Table]]


def run(parts: Mapping[str, Measure], *, into_docs: bool) -> list[str]:
    """Measure all of them, and print their tables; returns the names of those that failed."""
    took = {name: entry.seconds for name, entry in record.load().items()}
    progress = Progress([*parts], took)
    failed = []
    began = time.monotonic()
    try:
        for name, measure in parts.items():
            with progress.part(name):
                try:
                    entry = measured(measure, progress)
                except CannotMeasure as reason:
                    progress.say(f"{name} is left out: {reason}")
                    continue
                except Exception:
                    progress.say(f"{name} failed:\n{traceback.format_exc()}")
                    failed.append(name)
                    continue
            progress.say(f"\n## {name}\n\n{docs.part(entry)}\n", sys.stdout)
            if into_docs:
                # Loaded anew: another run may have recorded another part meanwhile.
                record.save(record.load() | {name: entry})
                docs.write(record.load())
    finally:
        progress.close()
    print(f"{len(parts)} parts took {duration(time.monotonic() - began)}", file=sys.stderr)
    return failed


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
        date=datetime.now().astimezone().date().isoformat(),
        seconds=time.monotonic() - began,
        machine=machine,
        busy=busy,
        figures=[each for each in told if isinstance(each, Figure)],
        tables=[each for each in told if isinstance(each, Table)],
    )
