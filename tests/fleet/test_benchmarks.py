"""The benchmarks' parts: where the docs show them, and what they measure with."""

import io
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from demo.install.steps import Step, Steps
from lab.benchmarks import docs, setup
from lab.benchmarks.__main__ import PARTS
from lab.benchmarks.stand import seconds_used
from rocket_rides.settings import PROJECT
from tests.support.world import PATIENCE


def test_each_part_is_shown_once() -> None:
    shown = [name for page in docs.PAGES for name in docs.blocks(page.read_text())]
    assert sorted(shown) == sorted([*PARTS, *docs.OVERVIEWS])


def test_what_is_missed_stands_first_and_the_readme_shows_headlines() -> None:
    assert docs.blocks((PROJECT / "docs/performance.md").read_text())[0] == "summary"
    assert docs.blocks((PROJECT / "README.md").read_text()) == ["headlines"]


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


def test_each_step_of_an_installation_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def step(steps: Steps) -> None:
        steps.run([sys.executable, "-c", ""])

    steps = [Step("getting uv, which is fast", step), Step("the 3 packages (large)", step)]
    Steps(steps, quiet=False).take()
    noted: dict[str, float] = {}
    setup.note(io.StringIO(capsys.readouterr().err), tmp_path / "output", noted)
    assert [*noted] == ["getting uv, which is fast", "the 3 packages (large)", setup.START]
    assert [*noted.values()] == sorted(noted.values())
