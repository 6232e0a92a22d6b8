"""The benchmarks' parts, and where the docs show them."""

from benchmarks import docs
from benchmarks.__main__ import HOUR, PARTS
from rocket_rides.settings import PROJECT

OTHERS = {"summary", "headlines"}


def test_each_part_is_shown_once() -> None:
    shown = [name for page in docs.PAGES for name in docs.blocks(page) if name not in OTHERS]
    assert sorted(shown) == sorted([*PARTS, HOUR])


def test_what_is_missed_stands_first_and_the_readme_shows_headlines() -> None:
    assert docs.blocks(PROJECT / "docs/performance.md")[0] == "summary"
    assert docs.blocks(PROJECT / "README.md") == ["headlines"]
