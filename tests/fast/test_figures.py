"""The benchmarks' figures: how they are judged, kept on record, and shown in the docs."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.benchmarks import docs, record, running
from lab.benchmarks.figures import Figure, Goal, table
from lab.benchmarks.record import BUSY, Entry

RATIO = Goal("ratio", ">=", 0.5)
AT_LEAST_3 = Goal("value", ">=", 3)
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
    return Entry("2026-11-22", 3, "2 cores", busy, [*figures])


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


@pytest.mark.parametrize(("run", "met"), [(4999.6, False), (4999.999999, False), (5000, True)])
def test_what_is_on_record_is_judged_as_it_was_when_it_was_new(
    page: Path, run: float, met: bool
) -> None:
    """Also what would keep its goal if it was rounded."""
    close = Figure("A", "rides/s", "B", RATIO, [run], [10_000])
    record.save({"part": entry(close, busy=BUSY - 0.01)})
    loaded = record.load()["part"]
    assert (close.met, loaded.figures[0].met) == (met, met)
    assert not loaded.was_busy


def test_a_ratio_is_the_median_over_pairs() -> None:
    """A machine that becomes ten times as slow slows both of a pair."""
    judged = Figure("A", "rides/s", "B", RATIO, [60, 6, 5], [100, 10, 10])
    assert (judged.ratio, judged.met) == (0.6, True)
    assert Figure("A", "rides/s", "B", RATIO, [60, 4, 4], [100, 10, 10]).met is False


def test_a_figure_with_two_limits_is_named_once() -> None:
    figures = [Figure("A", "rides/s", limit, RATIO, [1], [4]) for limit in ("B", "C")]
    assert table(figures).splitlines()[2:] == [
        "| A | 1 rides/s | B: 4 | 0.25 | at least 0.5 of the limit: **missed** |",
        "|  |  | C: 4 | 0.25 | at least 0.5 of the limit: **missed** |",
    ]


def test_a_part_replaces_its_own_rows_alone(page: Path, no_servers: None) -> None:
    """Whatever people wrote stays, too."""
    assert running.run({"slow": lambda _: [figure(1)]}, into_docs=True) == []
    once = page.read_text()
    assert "make bench ARGS=fast" in once
    assert running.run({"fast": lambda _: [figure(22)]}, into_docs=True) == []
    twice = page.read_text()
    slow, fast = twice.split("<!--figures:fast-->")
    _, _, slow = slow.partition("<!--figures:slow-->")
    assert "| A figure | 1 rides/s |" in slow
    assert slow in once
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
    slow = Figure("Slow", "rides/s", "a limit", RATIO, [1], [4])
    figures = [slow, figure(2, AT_LEAST_3), figure(9), figure(4, AT_LEAST_3)]
    told = docs.summary({"part": entry(*figures)}, ["part"])
    assert told.splitlines() == [
        "Of 3 goals, 1 is met.",
        "",
        "Missed:",
        "",
        "- part: Slow: 1 rides/s, 0.25 of a limit; goal: at least 0.5 of the limit, **missed**",
        "- part: A figure: 2 rides/s; goal: at least 3, **missed**",
    ]


def test_what_is_in_doubt_is_not_counted_as_met() -> None:
    """A missed goal is missed, with or without a doubt."""
    good, bad = figure(4, AT_LEAST_3), figure(2, AT_LEAST_3)
    entries = {"sure": entry(good, good), "busy": entry(good, bad, busy=BUSY)}
    assert docs.summary(entries, [*entries]).splitlines() == [
        "Of 4 goals, 2 are met. Not counted: 1 met on a busy machine.",
        "",
        "Missed:",
        "",
        "- busy: A figure: 2 rides/s; goal: at least 3, **missed** (measured on a busy machine)",
    ]


def test_what_is_not_measured_yet_is_named() -> None:
    def told(*parts: str) -> str:
        return docs.summary({"a": entry(figure(4, AT_LEAST_3))}, parts)

    assert told("a") == "Of 1 goal, 1 is met."
    assert told("a", "b") == "Of 1 goal, 1 is met. 1 part is not measured yet: b."
    assert told("a", "b", "c") == "Of 1 goal, 1 is met. 2 parts are not measured yet: b, c."
    page = docs.rendered(PAGE, {"slow": entry(figure(1))})
    assert "Of 0 goals, none are met. 1 part is not measured yet: fast." in page


@pytest.mark.parametrize(
    ("at_most", "said"),
    [(60, "took 0.1 minutes\n"), (0, "took 0.1 minutes, more than the 0.0 minutes that they may")],
)
def test_a_run_says_how_long_it_took(
    page: Path,
    no_servers: None,
    capsys: pytest.CaptureFixture[str],
    at_most: float,
    said: str,
) -> None:
    running.run({"slow": lambda _: [], "fast": lambda _: []}, into_docs=False, at_most=at_most)
    assert f"2 parts {said}" in capsys.readouterr().err


def test_what_took_too_long_is_not_rounded_down() -> None:
    assert [running.minutes(s) for s in (1194, 1200, 1201)] == [
        "19.9 minutes",
        "20.0 minutes",
        "20.1 minutes",
    ]


def test_the_readme_shows_the_headlines_alone() -> None:
    known = Figure("Known", "rides/s", goal=AT_LEAST_3, runs=[4], headline=True)
    line = "- Known: 4 rides/s; goal: at least 3, met"
    assert docs.headlines({"part": entry(figure(1), known)}) == line
    assert (
        docs.headlines({"part": entry(known, busy=BUSY)}) == f"{line} (measured on a busy machine)"
    )
