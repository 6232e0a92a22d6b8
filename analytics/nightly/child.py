"""A program in a child process: its output is logged line by line, and it ends when we do.

A run writes to a pipe. Its log lines begin with their level, as `rocket_rides.process` writes it,
and are logged at that level: or a run's WARNING would become an INFO of the reconciler. Any other
line, such as a library's, is an INFO.
"""

import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO

from rocket_rides.parent_death import preexec_die_with_parent
from rocket_rides.process import Stop

logger = logging.getLogger(__name__)

LEVEL_AND_MESSAGE = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) +(.*)")
POLL = 0.1  # seconds between checks of the running program
# Seconds that it and its own children, such as Spark's JVM, may take to end: usually, and when we
# are told to stop (honcho kills after 5 s).
LINGER = 10.0
GRACE = 2.0


class Child:
    """One run of `command`, in a process group of its own."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            # Each line at once, and in the encoding above.
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
            process_group=0,  # so that a signal to our group does not reach it
            preexec_fn=preexec_die_with_parent(),
        )
        assert self._process.stdout is not None  # noqa: S101 (it is a pipe)
        self._lines = threading.Thread(target=_relay, args=[self._process.stdout], daemon=True)
        self._lines.start()

    def wait(self, stop: Stop, until: datetime) -> int:
        """Wait for the program to end; end it at `until`, or when told to stop.

        Returns the exit status, or minus the signal's number. Must be called by the thread that
        created the child.
        """
        child = self._process
        while child.poll() is None and not stop.wait(POLL) and datetime.now(UTC) < until:
            pass
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + (GRACE if stop else LINGER)
        while (lives := self._group_lives()) and time.monotonic() < deadline:
            time.sleep(POLL)
        if lives:
            with suppress(ProcessLookupError):  # the last process has just ended
                os.killpg(child.pid, signal.SIGKILL)
        self._lines.join(GRACE)  # the output is complete
        return child.wait()

    def _group_lives(self) -> bool:
        self._process.poll()  # a dead process stays in the group until it has been waited for
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True


def _relay(output: IO[str]) -> None:
    """Log each line as it arrives, until the end of `output`."""
    with output:
        for line in output:
            if not (text := line.strip()):
                continue
            logged = LEVEL_AND_MESSAGE.fullmatch(text)
            level, message = logged.groups() if logged else ("INFO", text)
            logger.log(logging.getLevelNamesMapping()[level], "%s", message)
