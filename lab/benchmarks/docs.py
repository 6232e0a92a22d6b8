"""Writes what was measured into docs/performance.md, which is the record, and into README.md.

The block of a part (`lab.blocks`) holds its table; `machine` is where most parts were measured;
`summary`, and `headlines` in README.md, are made of the tables' rows. What is outside of blocks is
written by people.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from lab.benchmarks.figures import COLUMNS, MISSED
from lab.blocks import contents, filled, write
from rocket_rides.settings import PROJECT

PERFORMANCE = PROJECT / "docs/performance.md"
README = PROJECT / "README.md"
MACHINE, SUMMARY, HEADLINES = "machine", "summary", "headlines"
# When a part was measured; and where, unless on the machine that the page names first.
MEASURED = re.compile(r"^(\d{4}-\d\d-\d\d)(?:, (.+?))?\.(?=$| \*\*)", re.MULTILINE)
SHOWN = (
    *("`POST /rides`, 8 clients", "Drain of 200,000 records"),
    *("Ride to totals, idle, p50", "Ride to totals, idle, p99"),
)


class Row(NamedTuple):
    part: str
    figure: str
    measured: str
    limit: str
    ratio: str
    goal: str

    def __str__(self) -> str:
        """The figure as a sentence."""
        limit, _, _ = self.limit.rpartition(": ")
        beside = f", {self.ratio} times {limit}" if limit else ""
        bound, _, verdict = self.goal.rpartition(": ")
        goal = f"; goal: {bound}, {verdict}" if bound else ""
        return f"{self.figure}: {self.measured.partition(' (')[0]}{beside}{goal}"


def record(part: str, content: str) -> None:
    page = with_machine_once(filled(PERFORMANCE.read_text(), {part: lambda: content}))
    PERFORMANCE.write_text(filled(page, {SUMMARY: lambda: summary(page)}))
    write(README, {HEADLINES: lambda: headlines(page)})


def with_machine_once(page: str) -> str:
    """The page with the machine of most parts at its top; a part names only another."""
    blocks = contents(page)
    top = blocks[MACHINE].strip().removesuffix(".")
    found = {part: at for part, block in blocks.items() if (at := MEASURED.search(block))}
    machines = {part: at[2] or top for part, at in found.items()}
    [(most, _)] = Counter(machines.values()).most_common(1)
    shown = {MACHINE: f"{most}."}
    for part, machine in machines.items():
        when = found[part][1] if machine == most else f"{found[part][1]}, {machine}"
        shown[part] = MEASURED.sub(f"{when}.", blocks[part].strip(), count=1)
    return filled(page, {name: partial(str, text) for name, text in shown.items()})


def rows(page: str) -> Iterator[Row]:
    """All figures of all parts; not what else a part has a table of."""
    for part, block in contents(page).items():
        for paragraph in block.split("\n\n"):
            lines = [line[2:-2].split(" | ") for line in paragraph.strip().splitlines()]
            if lines[:1] == [[*COLUMNS]]:
                yield from (Row(part, *cells) for cells in lines[2:])


def summary(page: str) -> str:
    judged = [row for row in rows(page) if row.goal]
    missed = Counter(row.part for row in judged if row.goal.endswith(MISSED))
    parts = [f"{part} ({many})" if many > 1 else part for part, many in missed.items()]
    told = f"Of {len(judged)} goals, {len(judged) - missed.total()} are met"
    return f"{told}; missed: {', '.join(parts)}." if parts else f"{told}."


def headlines(page: str) -> str:
    first = {row.figure: row for row in reversed([*rows(page)])}
    return "\n".join(f"- {first[name]}" for name in SHOWN if name in first)
