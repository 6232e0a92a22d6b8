"""Writes the record's figures into docs/performance.md and README.md, between markers.

A line `<!--figures:NAME-->` begins a block and `<!--end-->` ends it. NAME is a part's; or
`summary`, which says how many goals are met, which are missed, and which of the page's parts are
not measured; or `headlines`, the figures that README.md shows. Whatever is outside the blocks is
written by people, also what an experiment gave when its change was made.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from lab.benchmarks import figures
from lab.benchmarks.figures import Figure
from lab.benchmarks.record import Entry
from rocket_rides.settings import PROJECT

PAGES = (PROJECT / "docs/performance.md", PROJECT / "README.md")
OVERVIEWS = ("summary", "headlines")
BLOCK = re.compile(r"(<!--figures:([\w-]+)-->\n).*?(<!--end-->)", re.DOTALL)


def write(entries: Mapping[str, Entry]) -> None:
    """Bring all blocks of all pages up to date."""
    for page in PAGES:
        page.write_text(rendered(page.read_text(), entries))


def rendered(text: str, entries: Mapping[str, Entry]) -> str:
    """The text with its blocks as the entries say."""
    parts = [name for name in blocks(text) if name not in OVERVIEWS]

    def filled(found: re.Match[str]) -> str:
        return f"{found[1]}\n{block(found[2], entries, parts)}\n\n{found[3]}"

    return BLOCK.sub(filled, text)


def blocks(text: str) -> list[str]:
    """The names of a page's blocks."""
    return [found[2] for found in BLOCK.finditer(text)]


def block(name: str, entries: Mapping[str, Entry], parts: Sequence[str]) -> str:
    """What stands between the markers of this block, on a page that shows these parts."""
    if name == "summary":
        return summary(entries, parts)
    if name == "headlines":
        return headlines(entries)
    if name not in entries:
        return f"Not measured yet: `make bench ARGS={name}`."
    return part(entries[name])


def part(entry: Entry) -> str:
    """A part's figures, and under what circumstances they were measured."""
    when = f"Measured on {entry.date} in {entry.seconds:.0f} s, on {entry.machine}."
    if entry.was_busy:
        when += (
            f" **When it began, others took {entry.busy:.0f} % of the machine**:"
            " these figures say little."
        )
    return f"{when}\n\n{figures.table(entry.figures)}"


def summary(entries: Mapping[str, Entry], parts: Sequence[str]) -> str:
    """How many goals are met for certain, what is not measured, and each goal that is missed."""
    judged = [(name, each, f) for name, each in entries.items() for f in each.figures if f.goal]
    met = Counter(doubt(entry) for _, entry, figure in judged if figure.met)
    said = [f"Of {several(len(judged), 'goal')}, {met[''] or 'none'} {be(met[''])} met."]
    if doubtful := [f"{count} met {why}" for why, count in met.items() if why]:
        said.append(f"Not counted: {', '.join(doubtful)}.")
    if unmeasured := [name for name in parts if name not in entries]:
        count = len(unmeasured)
        said.append(
            f"{several(count, 'part')} {be(count)} not measured yet: {', '.join(unmeasured)}."
        )
    missed = [f"- {name}: {sentence(f, entry)}" for name, entry, f in judged if not f.met]
    return "\n".join([" ".join(said), *(["", "Missed:", "", *missed] if missed else [])])


def headlines(entries: Mapping[str, Entry]) -> str:
    """The figures that README.md shows."""
    shown = ((figure, entry) for entry in entries.values() for figure in entry.figures)
    return "\n".join(f"- {sentence(*each)}" for each in shown if each[0].headline)


def sentence(figure: Figure, entry: Entry) -> str:
    """One line that says what was measured and what the goal is."""
    said = f"{figure.name}: {figures.number(figure.value)} {figure.unit}"
    if figure.ratio is not None:
        times = " times" if figure.ratio > 1 else " of"
        said += f", {figures.number(figure.ratio)}{times} {figure.limit_name}"
    if figure.goal is not None:
        said += f"; goal: {figure.goal}, {'met' if figure.met else '**missed**'}"
    return said + (f" (measured {why})" if (why := doubt(entry)) else "")


def doubt(entry: Entry) -> str:
    """Why a goal that these figures meet can't be called met; empty if it can."""
    return "on a busy machine" if entry.was_busy else ""


def several(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def be(count: int) -> str:
    return "is" if count == 1 else "are"
