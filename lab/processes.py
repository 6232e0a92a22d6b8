"""Starts the processes of a private fleet, with settings of their own."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from rocket_rides.parent_death import preexec_die_with_parent
from rocket_rides.settings import PROJECT, Settings


def start(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    output: int | IO[bytes],
    folder: Path = PROJECT,
) -> subprocess.Popen[bytes]:
    """Start it in a session of its own. The kernel ends it with the thread that starts it."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=preexec_die_with_parent(),
    )


def run(
    command: Sequence[str],
    environment: dict[str, str],
    patience: float,
    folder: Path = PROJECT,
    complaints: int = subprocess.STDOUT,
) -> "subprocess.CompletedProcess[str]":
    """Run `python -m COMMAND` to its end, or ours; `stdout` has its words. Raises TimeoutError.

    And what it says on stderr, unless `complaints` is subprocess.PIPE: then `stderr` has that.
    """
    try:
        return subprocess.run(
            [sys.executable, "-m", *command],
            cwd=folder,
            env=clean_environment() | environment,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            timeout=patience,
            check=False,
            preexec_fn=preexec_die_with_parent(),
        )
    except subprocess.TimeoutExpired as late:
        raise TimeoutError(str(late)) from None


def clean_environment() -> dict[str, str]:
    """This process' environment without the settings of the user's own fleet."""
    return {k: v for k, v in os.environ.items() if k.lower() not in Settings.model_fields}
