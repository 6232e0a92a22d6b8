"""The steps of an installation: which one it is at, and a sign of life every two seconds."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

EVERY = 1.5  # seconds between signs of life, without a terminal; two with a busy machine
ON_TERMINAL = 0.2
LAST_LINES = 15  # of a program that failed
BAR = 20  # characters


class StepFailed(Exception):
    """A step could not be done."""


@dataclass(frozen=True)
class Step:
    """One of them."""

    what: str
    take: Callable[["Steps"], None]


def say(line: str) -> None:
    """Tell whoever waits."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class Steps:
    """The steps to take, and the one that is being taken."""

    def __init__(self, steps: Sequence[Step], lock: int, *, quiet: bool) -> None:
        self._steps = steps
        self._lock = lock
        self._quiet = quiet
        self._terminal = sys.stderr.isatty() and not quiet
        self._label = ""
        self._bar = ""

    def take(self) -> None:
        """Take them all. Raises StepFailed."""
        began = time.monotonic()
        for done, step in enumerate(self._steps):
            self._label = f"[{done + 1}/{len(self._steps)}] {step.what}"
            filled = BAR * done // len(self._steps)
            self._bar = f"{'█' * filled}{'░' * (BAR - filled)}"
            step.take(self)
        if self._steps and not self._quiet:
            say(f"set up in {time.monotonic() - began:.0f} s")

    def note(self, line: str) -> None:
        """Say something about this step."""
        if not self._quiet:
            say(line)

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        has_a_bar: bool = False,
    ) -> None:
        """Run a program of this step, and show that it lives; StepFailed has the last that it said.

        On a terminal, one that `has_a_bar` of its own shows it.
        """
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            own_bar = has_a_bar and self._terminal
            if own_bar:
                say(self._label)
            process = subprocess.Popen(
                command,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=None if own_bar else said,
                stderr=None if own_bar else said,
                pass_fds=[self._lock],
            )
            if own_bar or self._quiet:
                process.wait()
            else:
                self._wait(process, said.fileno())
            said.seek(0)
            if process.returncode:
                told = "\n".join(said.read().splitlines()[-LAST_LINES:])
                raise StepFailed(told or f"{command[0]} ended with {process.returncode}")

    def _wait(self, process: subprocess.Popen[bytes], output: int) -> None:
        began = time.monotonic()
        while True:
            seconds = time.monotonic() - began
            if self._terminal:
                sys.stderr.write(f"\r\x1b[K{self._bar} {self._label}, {seconds:.0f} s")
                sys.stderr.flush()
            else:
                doing = f": {seconds:.0f} s {last_line(output)}".rstrip() if seconds >= 1 else ""
                say(f"{self._label}{doing}")
            try:
                process.wait(ON_TERMINAL if self._terminal else EVERY)
            except subprocess.TimeoutExpired:
                continue
            if self._terminal:
                sys.stderr.write("\n")
            return


def last_line(file: int) -> str:
    """The last line of what is in the file by now, in brackets."""
    size = os.fstat(file).st_size
    lines = os.pread(file, 400, max(0, size - 400)).decode(errors="replace").split("\n")
    text = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"({text[:80]})" if text else ""
