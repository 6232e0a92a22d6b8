"""The steps of an installation: which one it is at, and a sign of life every two seconds."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from textwrap import shorten

EVERY = 1.5  # seconds between signs of life, without a terminal; two with a busy machine
ON_TERMINAL = 0.2
LAST_LINES = 15  # of a program that failed
BAR = 20  # characters
ASIDES = ("WARNING", "DEPRECATION", "[notice]")


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
        own_bar = has_a_bar and self._terminal
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            output = None if own_bar else said
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
                self._show(process, said.fileno())
            if process.wait():
                said.seek(0)
                told = "\n".join(said.read().splitlines()[-LAST_LINES:])
                raise StepFailed(told or f"{command[0]} ended with {process.returncode}")

    def _show(self, process: subprocess.Popen[bytes], output: int) -> None:
        """Until it ends."""
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
    """The last line of what a program has said by now, in brackets; but no warnings of pip's."""
    size = os.fstat(file).st_size
    # The first of these may have lost its beginning.
    lines = os.pread(file, 4000, max(0, size - 4000)).decode(errors="replace").splitlines()
    texts = [line.strip() for line in lines[size > 4000 :]]
    text = next((text for text in reversed(texts) if text and not text.startswith(ASIDES)), "")
    return f"({shorten(text, 80, placeholder=' …')})" if text else ""
