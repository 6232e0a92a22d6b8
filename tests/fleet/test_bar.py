"""What somebody sees of a run of the tests."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rocket_rides.settings import PROJECT
from tests.support.bar import DOTS, Lines

ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # it starts sooner
TESTS = """
import time

def test_slow():
    time.sleep(2)

def test_fails():
    assert False
"""


def run(folder: Path, output: int, *options: str) -> int:
    (folder / "test_these.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.bar", "-c", os.devnull]
    return subprocess.run(
        [*command, f"--rootdir={folder}", *options, folder],
        env=os.environ | {"PYTHONPATH": str(PROJECT), "COLUMNS": "100"} | ALONE,
        stdout=output,
        stderr=output,
    ).returncode


def test_without_a_terminal_lines_say_how_far_it_is(tmp_path: Path) -> None:
    with (tmp_path / "output").open("w+") as output:
        assert run(tmp_path, output.fileno(), "-p", "xdist", "-n", "1") == 1
        said = Path(output.name).read_text()
    assert "0 %, 0 of 2 tests, " in said
    assert " s: test_slow (" in said
    assert re.search(r"\nFAILED test_these.py::test_fails \(call\)\n    .*:8: assert False\n", said)
    assert "1 failed, 1 passed" in said


def test_the_log_of_a_long_run_is_short_and_never_silent(tmp_path: Path) -> None:
    with (tmp_path / "output").open("w+") as output:
        lines = Lines(output)
        for tick in range(2 * DOTS + 1):
            before = output.tell()
            lines.go_on(f"{tick} s", anew=tick == 3)
            assert output.tell() > before
        lines.say("FAILED")
        lines.go_on("100 s", anew=False)
        lines.end()
        said = Path(output.name).read_text()
    dots = "." * DOTS
    assert said.splitlines() == [
        "0 s ...",
        f"3 s {dots}",
        f"{3 + DOTS} s {'.' * (DOTS - 2)}",
        "FAILED",
        "100 s .",
    ]


def test_on_a_terminal_a_bar_does(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    assert run(tmp_path, its) == 1
    said = os.read(ours, 100_000).decode()
    os.close(its)
    os.close(ours)
    assert "1 of 2 tests, 00:0" in said
    assert "test_slow (1 s)" in said
    assert "FAILED" in said
