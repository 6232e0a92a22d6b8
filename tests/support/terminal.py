"""A second terminal, in which a person runs programs beside a fleet."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from rocket_rides.settings import PROJECT
from tests.support.honcho import Fleet
from tests.support.world import PATIENCE

PYTHON = Path(sys.executable)


def person(fleet: Fleet, *command: str, **settings: str) -> subprocess.Popen[str]:
    """Start a program with the fleet's settings, as a person does."""
    return subprocess.Popen(
        [PYTHON, "-m", *command],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": "", "REDIS_URL": ""} | fleet.settings | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,  # as a shell does; in its starter's group Ctrl-Z may be ignored
        # A run of the tests in the background has it ignored, and all that it starts, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def told(fleet: Fleet, *command: str, **settings: str) -> tuple[int, str]:
    """The exit status and the output."""
    process = person(fleet, *command, **settings)
    said, _ = process.communicate(timeout=PATIENCE * 2)
    return process.returncode, said
