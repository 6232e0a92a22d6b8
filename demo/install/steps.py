"""The steps of an installation: a line for each, then a sign of life every two seconds."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

EVERY = 1.5  # seconds between signs of life; on a busy machine that becomes two
LAST_LINES = 15  # of a failed program's output


class StepFailed(Exception):
    """A step failed; the message has the program's last lines."""


class Step(NamedTuple):
    """One step; `what` describes it to the user."""

    what: str
    take: Callable[["Steps"], None]


class Steps:
    """The steps to take, and the one under way."""

    def __init__(self, steps: Sequence[Step], *, quiet: bool) -> None:
        self._steps = steps
        self._quiet = quiet
        self._label = ""
        self._began = self._last_line = time.monotonic()

    def take(self) -> None:
        """Take them all. Raises StepFailed."""
        began = time.monotonic()
        for number, step in enumerate(self._steps, 1):
            self._label = f"[{number}/{len(self._steps)}] {step.what}"
            self._began = time.monotonic()
            self.note(self._label)
            step.take(self)
        if self._steps:
            self.note(f"set up in {time.monotonic() - began:.0f} s")

    def note(self, line: str) -> None:
        """Print a line about this step."""
        self._last_line = time.monotonic()
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Run a program; its output is shown only if it fails. Raises StepFailed, or OSError."""
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = subprocess.Popen(
                command,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            self._wait(process)
            if process.returncode:
                output.seek(0)
                last = "\n".join(output.read().splitlines()[-LAST_LINES:])
                raise StepFailed(last or f"{command[0]} ended with {process.returncode}")

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        while process.returncode is None:
            silent = time.monotonic() - self._last_line
            try:
                process.wait(max(EVERY - silent, 0))
            except subprocess.TimeoutExpired:
                self.note(f"{self._label}: {time.monotonic() - self._began:.0f} s")
