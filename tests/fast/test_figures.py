"""The benchmarks' figures: how they are judged, kept on record, and shown in the docs."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import docs, record, running
from benchmarks.figures import Figure, Goal, Table, table
from benchmarks.progress import Progress
from benchmarks.record import BUSY, Entry

RATIO = Goal("ratio", ">=", 0.5)
PAGE = """\
By hand.
<!--figures:summary-->
<!--end-->
<!--figures:slow-->
<!--end-->
<!--figures:fast-->
<!--end-->
By hand, too.
"""


def figure(value: float, goal: Goal | None = None) -> Figure:
    return Figure("A figure", "rides/s", goal=goal, runs=[value])


def entry(*figures: Figure, busy: float = 0) -> Entry:
    return Entry("2026-11-22", 3, "2 cores", busy, [*figures], [Table(["a"], [["b"]])])


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only page that shows the record, which is empty."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    monkeypatch.setattr(docs, "PAGES", (page,))
    monkeypatch.setattr(record, "FILE", tmp_path / "record.json")
    return page


@pytest.fixture
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def stand(_: object) -> Iterator[object]:
        yield SimpleNamespace(versions=lambda: ["PostgreSQL 18"])

    monkeypatch.setattr(running, "stand", stand)
    monkeypatch.setattr(record, "busy", lambda: 0.0)


@pytest.mark.parametrize("shown", docs.PAGES, ids=lambda page: page.name)
def test_the_docs_show_what_is_on_record(shown: Path) -> None:
    text = shown.read_text()
    assert text == docs.rendered(text, record.load()), "`make bench` writes it, not a hand"


def test_what_is_on_record_comes_back_as_it_was(page: Path) -> None:
    kept = entry(Figure("A", "ms", "B", RATIO, [1.5, 1234.0], [2, 3], headline=True), figure(0))
    record.save({"slow": kept, "fast": entry()})
    assert record.load() == {"slow": kept, "fast": entry()}


def test_a_ratio_is_the_median_over_pairs() -> None:
    """A machine that becomes ten times as slow slows both of a pair."""
    judged = Figure("A", "rides/s", "B", RATIO, [60, 6, 5], [100, 10, 10])
    assert (judged.ratio, judged.met) == (0.6, True)
    assert Figure("A", "rides/s", "B", RATIO, [60, 4, 4], [100, 10, 10]).met is False


def test_a_figure_with_two_limits_is_named_once() -> None:
    figures = [Figure("A", "rides/s", limit, RATIO, [1], [4]) for limit in ("B", "C")]
    assert [row[0] for row in table(figures).rows] == ["A", ""]
    assert "| A | 1 rides/s | B: 4 | 0.25 | at least 0.5 of the limit: **missed** |" in str(
        table(figures)
    )


def test_a_part_replaces_its_own_rows_alone(page: Path, no_servers: None) -> None:
    """Whatever people wrote stays, too."""
    assert running.run({"slow": lambda _: [figure(1)]}, into_docs=True) == []
    once = page.read_text()
    assert "make bench ARGS=fast" in once
    assert running.run({"fast": lambda _: [figure(22)]}, into_docs=True) == []
    twice = page.read_text()
    slow, fast = twice.split("<!--figures:fast-->")
    assert slow == once.split("<!--figures:fast-->")[0]
    assert "| A figure | 22 rides/s |" in fast
    assert twice.startswith("By hand.\n")
    assert twice.endswith("<!--end-->\nBy hand, too.\n")


def test_a_part_that_fails_takes_no_other_with_it(page: Path, no_servers: None) -> None:
    def fail(_: object) -> list[Figure]:
        raise RuntimeError("stuck")

    running.run({"slow": lambda _: [figure(1)]}, into_docs=True)
    parts = {"slow": fail, "fast": lambda _: [figure(22)]}
    assert running.run(parts, into_docs=True) == ["slow"]
    shown = page.read_text()
    assert "| A figure | 1 rides/s |" in shown
    assert "| A figure | 22 rides/s |" in shown


def test_parts_can_be_measured_without_touching_the_docs(page: Path, no_servers: None) -> None:
    running.run({"slow": lambda _: [figure(1)]}, into_docs=False)
    assert (page.read_text(), record.load()) == (PAGE, {})


def test_a_busy_machine_is_said(
    page: Path,
    no_servers: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While it runs, and by the figures."""
    monkeypatch.setattr(record, "busy", lambda: BUSY + 27)
    running.run({"slow": lambda _: [figure(1)]}, into_docs=True)
    assert "37 %" in capsys.readouterr().err
    assert "others took 37 % of the machine" in page.read_text()
    monkeypatch.setattr(record, "busy", lambda: BUSY / 2)
    running.run({"slow": lambda _: [figure(1)]}, into_docs=True)
    assert "others took" not in page.read_text()


def test_what_misses_its_goal_is_named_first() -> None:
    goal = Goal("value", ">=", 3)
    slow = Figure("Slow", "rides/s", "a limit", RATIO, [1], [4])
    told = docs.summary({"part": entry(slow, figure(2, goal), figure(9), figure(4, goal))})
    assert told.splitlines() == [
        "Of 3 goals, 1 are met. Missed:",
        "",
        "- part: Slow: 1 rides/s, 0.25 of a limit; goal: at least 0.5 of the limit, **missed**",
        "- part: A figure: 2 rides/s; goal: at least 3, **missed**",
    ]


def test_what_is_left_is_known_from_the_last_time() -> None:
    progress = Progress(["slow", "fast"], {"slow": 100, "fast": 300})
    assert progress.line("slow", 20) == "[1/2] slow: 20 s of some 100; some 6 minutes left"
    progress.doing("posting")
    assert progress.line("fast", 290) == "[2/2] fast: 290 s of some 300 (posting); some 10 s left"
    assert progress.line("fast", 500) == "[2/2] fast: 500 s of some 300 (posting); some 0 s left"


def test_the_readme_shows_the_headlines_alone() -> None:
    known = entry(figure(1), Figure("Known", "rides/s", runs=[2], headline=True))
    assert docs.block("headlines", {"part": known}) == "- Known: 2 rides/s"
