"""The benchmarks' figures: how they are judged, and shown in the docs, which are the record."""

import contextlib
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.benchmarks import __main__ as benchmarks
from lab.benchmarks import docs
from lab.benchmarks.figures import Figure, Goal, Table
from lab.benchmarks.groups import Runs, distribution, shares
from lab.benchmarks.members import Run, Spent
from lab.blocks import contents, filled

RATIO = Goal("ratio", ">=", 0.5)
PAGE = """\
By hand.
<!--figures:machine-->
<!--end-->
<!--figures:summary-->
<!--end-->
<!--figures:slow-->
<!--end-->

| by hand | too |
| --- | --- |
| at least 3: | met |

<!--figures:fast-->
<!--end-->
By hand, too.
"""


def figure(value: float, goal: Goal | None = None) -> Figure:
    return Figure("A figure", "rides/s", goal=goal, runs=[value])


def group_run(*took: int) -> Run:
    """Of entries that took so long, in nanoseconds, from when they were sent."""
    return Run(array("q", sorted(took)), array("q"), Spent(0, 0))


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page, which shows nothing yet, and benchmarks without servers."""

    @contextlib.contextmanager
    def stand() -> Iterator[object]:
        yield SimpleNamespace(versions=lambda: ["PostgreSQL 18"])

    page, readme = tmp_path / "page.md", tmp_path / "README.md"
    page.write_text(PAGE)
    readme.write_text("Mine.\n<!--figures:headlines-->\n<!--end-->\n")
    monkeypatch.setattr(docs, "PERFORMANCE", page)
    monkeypatch.setattr(docs, "README", readme)
    monkeypatch.setattr(benchmarks, "stand", stand)
    monkeypatch.setattr(benchmarks, "LOOK", 0)
    return page


def test_what_the_docs_say_in_short_is_what_their_tables_say() -> None:
    page, readme = docs.PERFORMANCE.read_text(), docs.README.read_text()
    told = {docs.SUMMARY: lambda: docs.summary(page), docs.HEADLINES: lambda: docs.headlines(page)}
    assert page == filled(page, told), "`make bench` writes it"
    assert readme == filled(readme, told)
    assert len(docs.headlines(page).splitlines()) == len(docs.SHOWN)
    assert sorted(contents(page)) == sorted([*benchmarks.PARTS, docs.SUMMARY, docs.MACHINE])
    assert page == docs.with_machine_once(page)


@pytest.mark.parametrize(("run", "met"), [(4999.6, False), (4999.999999, False), (5000, True)])
def test_what_would_keep_its_goal_if_it_was_rounded_is_missed(run: float, met: bool) -> None:
    *_, goal = Figure("A", "rides/s", "B", RATIO, [run], [10_000]).cells()
    assert goal.endswith(": met") == met
    assert goal.endswith(": **missed**") != met


def test_a_ratio_is_the_median_over_pairs() -> None:
    """A machine that becomes ten times as slow slows both of a pair."""
    judged = Figure("A", "rides/s", "B", RATIO, [60, 6, 5], [100, 10, 10])
    assert (judged.ratio, judged.met) == (0.6, True)
    assert Figure("A", "rides/s", "B", RATIO, [60, 4, 4], [100, 10, 10]).met is False


def test_a_part_replaces_its_own_rows_alone(page: Path) -> None:
    """Whatever people wrote stays, too."""

    benchmarks.run("slow", lambda _: [figure(1)])
    once = page.read_text()
    benchmarks.run("fast", lambda _: [figure(22)])
    twice = page.read_text()
    slow, fast = twice.split("<!--figures:fast-->")
    _, _, slow = slow.partition("<!--figures:slow-->")
    assert "| A figure | 1 rides/s |" in slow
    assert slow in once
    assert "| by hand | too |" in slow
    assert "| A figure | 22 rides/s |" in fast
    assert twice.startswith("By hand.\n")
    assert twice.endswith("<!--end-->\nBy hand, too.\n")


def test_a_part_that_waits_in_vain_says_so_and_keeps_its_older_figures(
    page: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def waits(_: object) -> list[Figure]:
        raise TimeoutError("the fleet does not become idle")

    assert benchmarks.run("slow", lambda _: [figure(1)])
    once = page.read_text()
    assert not benchmarks.run("slow", waits)
    assert capfd.readouterr().err.endswith("\nslow: the fleet does not become idle\n")
    assert page.read_text() == once


def test_the_machine_stands_once_and_a_part_that_was_measured_on_another_names_it(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(part: str, machine: str) -> None:
        monkeypatch.setattr(benchmarks, "machine", lambda _: machine)
        benchmarks.run(part, lambda _: [figure(1)])

    def told() -> list[str]:
        blocks = contents(page.read_text())
        firsts = [blocks[name].strip().splitlines()[0] for name in (docs.MACHINE, "slow", "fast")]
        return [re.sub(r"^[\d-]{10}|(?<=\.) \*\*.*", "", first) for first in firsts]

    old, new = "2 cores, Valkey 9.1.2", "4 cores, Valkey 9.2.0"
    run("slow", old)
    run("fast", old)
    assert told() == [f"{old}.", ".", "."]
    run("fast", new)
    assert told() == [f"{old}.", ".", f", {new}."]
    run("slow", new)
    assert told() == [f"{new}.", ".", "."]


def test_whatever_misses_a_goal_is_named_first() -> None:
    goal = Goal("value", ">=", 3)
    slow = [Figure("Slow", "s", "a limit", RATIO, [1], [4])]
    fast = [figure(9), figure(4, goal), figure(2, goal)]
    tables = {"slow": lambda: benchmarks.shown(slow), "fast": lambda: benchmarks.shown(fast)}
    shown = filled(PAGE, tables)
    assert docs.summary(shown) == "Of 3 goals, 1 are met; missed: slow, fast."
    tables["slow"] = lambda: benchmarks.shown([figure(1, goal), figure(2, goal)])
    assert docs.summary(filled(PAGE, tables)) == "Of 4 goals, 1 are met; missed: slow (2), fast."


def test_a_table_of_another_form_is_shown_below_and_judged_by_nobody(page: Path) -> None:
    shares = Table(["ms", "published", "ours"], [["0-1", "74.11 %", "97.21 %"]])
    benchmarks.run("slow", lambda _: [shares, figure(2, Goal("value", ">=", 3))])
    block = contents(page.read_text())["slow"]
    assert block.index("| A figure | 2 rides/s |") < block.index("| 0-1 | 74.11 % | 97.21 % |")
    assert "Of 1 goals, 0 are met; missed: slow." in page.read_text()


def test_an_entry_is_counted_in_the_millisecond_in_which_it_came() -> None:
    took = [0, 999_999, 1_000_000, 2_500_000, 4_999_999, 5_000_000, 700_000_000, 2**40]
    assert shares([group_run(*took)]) == [25, 12.5, 12.5, 0, 12.5, 37.5]


def test_what_the_runs_distribute_adds_up_to_all_entries_however_they_differ() -> None:
    fast, slow, neither = group_run(0, 0), group_run(2**40, 2**40), group_run(1_500_000, 2**40)
    shown = distribution({"memory": Runs([fast, slow, neither, slow], [slow, fast, neither, fast])})
    assert shown.columns == ["ms", "published", "memory: redis-py", "memory: ours"]
    _, *columns = zip(*shown.rows, strict=True)
    for column in columns:
        assert sum(float(share.removesuffix(" %")) for share in column) == pytest.approx(100)
