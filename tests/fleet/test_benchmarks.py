"""The benchmarks' parts: where the docs show them, and what they measure with."""

import subprocess
import sys

import psutil
import pytest

from lab.benchmarks import docs
from lab.benchmarks.__main__ import PARTS
from lab.benchmarks.idle import seconds_used
from tests.support.world import PATIENCE


def test_each_part_is_shown_once() -> None:
    shown = [found[2] for found in docs.BLOCK.finditer(docs.PERFORMANCE.read_text())]
    assert sorted(shown) == sorted([*PARTS, docs.SUMMARY])


def test_what_is_missed_stands_first_and_the_readme_shows_headlines() -> None:
    assert next(iter(docs.blocks(docs.PERFORMANCE.read_text()))) == docs.SUMMARY
    assert [*docs.blocks(docs.README.read_text())] == [docs.HEADLINES]


def test_a_process_that_ends_while_it_is_counted_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its parent has its seconds by then."""
    children = psutil.Process.children

    def ended(process: psutil.Process, recursive: bool = False) -> list[psutil.Process]:
        found = children(process, recursive)
        child.kill()
        child.wait()
        return found

    with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({PATIENCE})"]) as child:
        monkeypatch.setattr(psutil.Process, "children", ended)
        assert seconds_used(psutil.Process()) > 0
    assert child.returncode < 0
