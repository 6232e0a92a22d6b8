"""The benchmarks' figures: how they are judged, and shown in the docs, which are the record."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from lab.benchmarks import __main__ as benchmarks
from lab.benchmarks import docs
from lab.benchmarks.figures import Figure, Goal, table

RATIO = Goal("ratio", ">=", 0.5)
AT_LEAST_3 = Goal("value", ">=", 3)
KNOWN = docs.SHOWN[0]
PAGE = """\
By hand.
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
README = "Mine.\n<!--figures:headlines-->\n<!--end-->\n"


def figure(value: float, goal: Goal | None = None, name: str = "A figure") -> Figure:
    return Figure(name, "rides/s", goal=goal, runs=[value])


def shown(*slow: Figure, fast: tuple[Figure, ...] = (), doubtful: bool = False) -> str:
    """A page that shows these; those of `fast` from a machine that others used, if `doubtful`."""
    page = docs.filled(PAGE, "slow", table(slow))
    return docs.filled(page, "fast", table(fast, doubtful=doubtful))


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page, which shows nothing yet."""
    page, readme = tmp_path / "page.md", tmp_path / "README.md"
    page.write_text(PAGE)
    readme.write_text(README)
    monkeypatch.setattr(docs, "PERFORMANCE", page)
    monkeypatch.setattr(docs, "README", readme)
    return page


@pytest.fixture
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def stand() -> Iterator[object]:
        yield SimpleNamespace(versions=lambda: ["PostgreSQL 18"])

    monkeypatch.setattr(benchmarks, "stand", stand)
    others_use(monkeypatch, 0)


def others_use(monkeypatch: pytest.MonkeyPatch, percent: float) -> None:
    monkeypatch.setattr(psutil, "cpu_percent", lambda _: percent)


def test_what_the_docs_say_in_short_is_what_their_tables_say() -> None:
    page, readme = docs.PERFORMANCE.read_text(), docs.README.read_text()
    assert page == docs.filled(page, docs.SUMMARY, docs.summary(page)), "`make bench` writes it"
    assert readme == docs.filled(readme, docs.HEADLINES, docs.headlines(page))
    assert len(docs.headlines(page).splitlines()) == len(docs.SHOWN)


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


def test_each_run_is_followed_by_one_of_its_limit() -> None:
    numbers = iter(range(6))
    judged = Figure("A", "rides/s", "B").measure(3, lambda: next(numbers), lambda: next(numbers))
    assert (judged.runs, judged.limits) == ([0, 2, 4], [1, 3, 5])


def test_a_part_replaces_its_own_rows_alone(page: Path, no_servers: None) -> None:
    """Whatever people wrote stays, too."""
    assert benchmarks.run({"slow": lambda _: [figure(1)]}, into_docs=True) == []
    once = page.read_text()
    assert benchmarks.run({"fast": lambda _: [figure(22)]}, into_docs=True) == []
    twice = page.read_text()
    slow, fast = twice.split("<!--figures:fast-->")
    _, _, slow = slow.partition("<!--figures:slow-->")
    assert "| A figure | 1 rides/s |" in slow
    assert slow in once
    assert "| by hand | too |" in slow
    assert "| A figure | 22 rides/s |" in fast
    assert twice.startswith("By hand.\n")
    assert twice.endswith("<!--end-->\nBy hand, too.\n")


def test_a_part_that_fails_takes_no_other_with_it(
    page: Path, no_servers: None, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> list[Figure]:
        raise RuntimeError("stuck")

    benchmarks.run({"slow": lambda _: [figure(1)]}, into_docs=True)
    parts = {"slow": fail, "fast": lambda _: [figure(22)]}
    assert benchmarks.run(parts, into_docs=True) == ["slow"]
    assert "stuck" in capsys.readouterr().err
    text = page.read_text()
    assert "| A figure | 1 rides/s |" in text
    assert "| A figure | 22 rides/s |" in text


def test_parts_can_be_measured_without_touching_the_docs(page: Path, no_servers: None) -> None:
    benchmarks.run({"slow": lambda _: [figure(1)]}, into_docs=False)
    assert (page.read_text(), docs.README.read_text()) == (PAGE, README)


def test_a_busy_machine_is_said(
    page: Path,
    no_servers: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While it runs, and by the figures."""
    others_use(monkeypatch, 37)
    benchmarks.run({"slow": lambda _: [figure(4, AT_LEAST_3)]}, into_docs=True)
    assert "37 %" in capsys.readouterr().err
    assert "others took 37 % of the machine" in page.read_text()
    assert "Of 1 goals, 0 are met" in page.read_text()
    others_use(monkeypatch, benchmarks.BUSY / 2)
    benchmarks.run({"slow": lambda _: [figure(4, AT_LEAST_3)]}, into_docs=True)
    assert "others took" not in page.read_text()
    assert "Of 1 goals, 1 are met" in page.read_text()


def test_what_misses_its_goal_is_named_first() -> None:
    slow = Figure("Slow", "rides/s", "a limit", RATIO, [1, 2, 1], [4, 4, 4])
    page = shown(slow, figure(2, AT_LEAST_3), fast=(figure(9), figure(4, AT_LEAST_3)))
    assert docs.summary(page).splitlines() == [
        "Of 3 goals, 1 are met.",
        "",
        "Missed:",
        "",
        "- slow: Slow",
        "- slow: A figure",
    ]


def test_what_is_in_doubt_is_not_counted_as_met() -> None:
    """A missed goal is missed, with or without a doubt."""
    good, bad = figure(4, AT_LEAST_3), figure(2, AT_LEAST_3)
    page = shown(good, good, fast=(good, bad), doubtful=True)
    assert docs.summary(page).splitlines() == [
        "Of 4 goals, 2 are met.",
        "",
        "Missed:",
        "",
        "- fast: A figure",
    ]


def test_the_readme_shows_the_headlines_alone() -> None:
    """A figure that was compared with several limits is shown beside the first."""
    known = [Figure(KNOWN, "rides/s", limit, RATIO, [4], [5]) for limit in ("B: one", "C")]
    line = f"- {KNOWN}: 4 rides/s, 0.8 times B: one; goal: at least 0.5 of the limit, met"
    assert docs.headlines(shown(figure(1), *known)) == line
    assert docs.headlines(shown(fast=(known[0],), doubtful=True)) == (
        f"{line}, but others used the machine"
    )
