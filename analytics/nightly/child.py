"""A program in a child process: it prints where we do, and it ends when we do."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from rocket_rides.parent_death import preexec_die_with_parent
from unified_log.process import Stop

POLL = 0.1  # seconds between checks of the running program
# Seconds that it and its own children, such as Spark's JVM, may take to end: usually, and when we
# are told to stop (honcho kills after 5 s).
LINGER = 10.0
GRACE = 2.0


def run(command: Sequence[str], stop: Stop, until: datetime) -> int:
    """Run `command` until it ends; end it at `until`, or when told to stop.

    Returns the exit status, or minus the signal's number.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        process_group=0,  # so that a signal to our group does not reach it
        preexec_fn=preexec_die_with_parent(),
    )
    while child.poll() is None and not stop.wait(POLL) and datetime.now(UTC) < until:
        pass
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + (GRACE if stop else LINGER)
    while (lives := _group_lives(child)) and time.monotonic() < deadline:
        time.sleep(POLL)
    if lives:
        with suppress(ProcessLookupError):  # the last process has just ended
            os.killpg(child.pid, signal.SIGKILL)
    return child.wait()


def _group_lives(child: subprocess.Popen[bytes]) -> bool:
    child.poll()  # a dead process stays in the group until it has been waited for
    try:
        os.killpg(child.pid, 0)
    except ProcessLookupError:
        return False
    return True
