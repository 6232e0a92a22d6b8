"""A bad setting, as a process tells of it."""

import subprocess
import sys

import pytest

from rocket_rides.settings import PROJECT

PROCESSES = [
    "analytics.nightly",
    "api",
    "streamer",
    "consumers",
    "demo.simulator",
    "migrations",
    "demo.embedded",
]


@pytest.mark.parametrize("module", PROCESSES)
def test_every_process_refuses_it_without_a_traceback(module: str) -> None:
    arguments = ["consumer0"] if module == "consumers" else []
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=PROJECT,
        env={"API_PORT": "many", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "API_PORT=many is refused: Input should be a valid integer, unable to parse string as an"
        " integer"
    ]
