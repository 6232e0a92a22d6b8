"""Writes the record's figures into docs/performance.md and README.md, between markers.

A line `<!--figures:NAME-->` begins a block and `<!--end-->` ends it. NAME is a part's; or
`summary`, which says which goals are missed; or `headlines`, the figures that README.md shows.
Whatever is outside the blocks is written by people, who leave the figures to the blocks.
"""

import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from benchmarks import figures
from benchmarks.figures import Figure
from benchmarks.record import Entry
from rocket_rides.settings import PROJECT

PAGES = (PROJECT / "docs/performance.md", PROJECT / "README.md")
BLOCK = re.compile(r"(<!--figures:([\w-]+)-->\n).*?(<!--end-->)", re.DOTALL)


def write(entries: Mapping[str, Entry]) -> None:
    """Bring all blocks of all pages up to date."""
    for page in PAGES:
        page.write_text(rendered(page.read_text(), entries))


def rendered(text: str, entries: Mapping[str, Entry]) -> str:
    """The text with its blocks as the entries say."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{block(found[2], entries)}\n\n{found[3]}", text)


def blocks(page: Path) -> list[str]:
    """The names of a page's blocks."""
    return [found[2] for found in BLOCK.finditer(page.read_text())]


def block(name: str, entries: Mapping[str, Entry]) -> str:
    """What stands between the markers of this block."""
    if name == "summary":
        return summary(entries)
    if name == "headlines":
        every = chain.from_iterable(entry.figures for entry in entries.values())
        return "\n".join(f"- {sentence(figure)}" for figure in every if figure.headline)
    if name not in entries:
        return f"Not measured yet: `make bench ARGS={name}`."
    return part(entries[name])


def part(entry: Entry) -> str:
    """A part's figures and tables, and under what circumstances they were measured."""
    when = f"Measured on {entry.date} in {entry.seconds:.0f} s, on {entry.machine}."
    if entry.was_busy:
        when += (
            f" **When it began, others took {entry.busy:.0f} % of the machine**:"
            " these figures say little."
        )
    return "\n\n".join([when, *map(str, [figures.table(entry.figures), *entry.tables])])


def summary(entries: Mapping[str, Entry]) -> str:
    """How many goals are met, and those that are not."""
    judged = [(name, f) for name, entry in entries.items() for f in entry.figures if f.goal]
    missed = [(name, figure) for name, figure in judged if not figure.met]
    first = f"Of {len(judged)} goals, {len(judged) - len(missed)} are met"
    lines = [f"- {name}: {sentence(figure)}" for name, figure in missed]
    return "\n".join([f"{first}. Missed:", "", *lines]) if missed else f"{first}."


def sentence(figure: Figure) -> str:
    """One line that says what was measured and what the goal is."""
    said = f"{figure.name}: {figures.number(figure.value)} {figure.unit}"
    if figure.ratio is not None:
        said += f", {figures.number(figure.ratio)} of {figure.limit_name}"
    if figure.goal is not None:
        said += f"; goal: {figure.goal}, {'met' if figure.met else '**missed**'}"
    return said
