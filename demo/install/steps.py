"""The steps of an installation: a line for each, then a sign of life every two seconds."""

import os
import sys
import time
from collections.abc import Sequence
from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired

EVERY = 1.5  # seconds between signs of life; on a busy machine that becomes two
LAST_LINES = 15  # of a failed program's output


def without_others() -> dict[str, str]:
    """Our environment without what was meant for other projects' pip, uv and Python."""
    others = ("PIP_", "UV_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return kept | {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}


class StepFailed(Exception):
    """A step failed; the message has the program's last lines."""


class Steps:
    """Tells a person about the step that is under way, unless `quiet`."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._label = ""
        self._began = self._last_line = time.monotonic()

    def begin(self, label: str) -> None:
        """Begin a step."""
        self._label, self._began = label, time.monotonic()
        self.note(label)

    def note(self, line: str) -> None:
        """Print a line about this step."""
        self._last_line = time.monotonic()
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    def run(self, command: Sequence[str], settings: dict[str, str] | None = None) -> None:
        """Run a program; its output is shown only if it fails. Raises StepFailed, or OSError."""
        env = without_others() | (settings or {})
        process = Popen(command, env=env, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
        while process.returncode is None:
            try:
                silent = time.monotonic() - self._last_line
                output, _ = process.communicate(timeout=max(EVERY - silent, 0))
            except TimeoutExpired:
                self.note(f"{self._label}: {time.monotonic() - self._began:.0f} s")
        if process.returncode:
            last = "\n".join(output.decode(errors="replace").splitlines()[-LAST_LINES:])
            raise StepFailed(last or f"{command[0]} ended with {process.returncode}")
