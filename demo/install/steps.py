"""The steps of an installation: shows the current one, with a sign of life every two seconds."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from textwrap import shorten

EVERY = 1.5  # seconds between lines without a terminal; on a busy machine that becomes two
ON_TERMINAL = 0.2
LAST_LINES = 15  # of a failed program's output
BAR = 20  # characters
ASIDES = ("WARNING", "DEPRECATION", "[notice]")


class StepFailed(Exception):
    """A step failed; the message has the program's last lines."""


@dataclass(frozen=True)
class Step:
    """One step; `what` describes it to the user."""

    what: str
    take: Callable[["Steps"], None]


def say(line: str) -> None:
    """Print a line to standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class Steps:
    """The steps to take, and the one under way."""

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
        """Print a line about this step."""
        if not self._quiet:
            say(line)

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        has_a_bar: bool = False,
    ) -> None:
        """Run a program for this step and show progress. Raises StepFailed.

        On a terminal, a program that `has_a_bar` of its own shows that instead.
        """
        own_bar = has_a_bar and self._terminal
        with tempfile.TemporaryFile("w+", errors="replace") as captured:
            output = None if own_bar else captured
            if own_bar:
                say(self._label)
            process = subprocess.Popen(
                command,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[self._lock],
            )
            if not (own_bar or self._quiet):
                self._show(process, captured.fileno())
            if process.wait():
                captured.seek(0)
                last = "\n".join(captured.read().splitlines()[-LAST_LINES:])
                raise StepFailed(last or f"{command[0]} ended with {process.returncode}")

    def _show(self, process: subprocess.Popen[bytes], output: int) -> None:
        """Show progress until the program ends."""
        began = time.monotonic()
        while process.returncode is None:
            seconds = time.monotonic() - began
            if self._terminal:
                sys.stderr.write(f"\r\x1b[K{self._bar} {self._label}, {seconds:.0f} s")
                sys.stderr.flush()
            elif seconds < 1:
                say(self._label)
            else:
                say(f"{self._label}: {seconds:.0f} s {last_line(output)}".rstrip())
            with suppress(subprocess.TimeoutExpired):
                process.wait(ON_TERMINAL if self._terminal else EVERY)
        if self._terminal:
            sys.stderr.write("\n")


def last_line(file: int) -> str:
    """The last line of a program's output so far, in brackets, leaving out pip's warnings."""
    size = os.fstat(file).st_size
    # The first of these lines may be incomplete.
    lines = os.pread(file, 4000, max(0, size - 4000)).decode(errors="replace").splitlines()
    texts = [line.strip() for line in lines[size > 4000 :]]
    text = next((text for text in reversed(texts) if text and not text.startswith(ASIDES)), "")
    return f"({shorten(text, 80, placeholder=' …')})" if text else ""
