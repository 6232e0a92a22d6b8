"""The record, docs/performance.json: what each part measured last, when, and on what.

docs/performance.md and README.md show it. A part that is measured again replaces its own entry and
no other. After a crash the file is as it was before, or as it is after.
"""

import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from lab.benchmarks.figures import Figure
from rocket_rides.settings import PROJECT

FILE = PROJECT / "docs/performance.json"
BUSY = 10.0  # percent of all cores: what others may take before a part begins
LOOK = 1.0  # seconds that are looked at
GIBIBYTE = 2**30
# A figure: what begins three levels deep, up to its end.
INNER = re.compile(r"(?<=^ {6})\{$.*?^ {6}\}", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """What a part measured, and the circumstances; `busy` is in percent of all cores."""

    date: str
    seconds: float
    machine: str
    busy: float
    figures: list[Figure]

    @property
    def was_busy(self) -> bool:
        """Whether others used the machine when the part began: then its figures say little."""
        return self.busy >= BUSY

    def as_json(self) -> dict[str, Any]:
        return vars(self) | {
            "seconds": round(self.seconds),
            "figures": [figure.as_json() for figure in self.figures],
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Entry":
        figures = [Figure.from_json(figure) for figure in stored["figures"]]
        return cls(**stored | {"figures": figures})


def load() -> dict[str, Entry]:
    """Each part's entry, by its name."""
    stored = json.loads(FILE.read_text()) if FILE.exists() else {}
    return {name: Entry.from_json(entry) for name, entry in stored.items()}


def save(entries: dict[str, Entry]) -> None:
    """Replace the file."""
    unfinished = FILE.with_suffix(".new")
    unfinished.write_text(as_text({name: entries[name].as_json() for name in sorted(entries)}))
    unfinished.replace(FILE)


def as_text(stored: dict[str, Any]) -> str:
    """As JSON with a line for each figure, so that a person can read the differences."""
    text = json.dumps(stored, indent=2)
    return INNER.sub(lambda found: " ".join(found[0].split()), text) + "\n"


def busy() -> float:
    """How much of all cores is in use just now, in percent."""
    return psutil.cpu_percent(LOOK)


def machine(versions: Sequence[str]) -> str:
    """In general words: its size, and the versions of what runs on it."""
    memory = round(psutil.virtual_memory().total / GIBIBYTE)
    python = f"Python {platform.python_version()}"
    return ", ".join([f"{os.cpu_count()} cores, {memory} GB", python, *versions])
