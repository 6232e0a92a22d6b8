"""Waiting until something holds, and giving up when it can't any more."""

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

Told = TypeVar("Told")

POLL = 0.02  # seconds
PATIENCE = 120.0  # seconds until something is up, on a busy machine
LAST = 2000  # characters of what a program has printed


class Failed(Exception):
    """Something on the cluster did not come about; the message says what."""


def wait_until(
    condition: Callable[[], Told],
    what: str,
    needs: "subprocess.Popen[bytes] | None" = None,
    patience: float = PATIENCE,
) -> Told:
    """What the condition says once it says something. Raises Failed.

    Also when the program that it `needs` has ended.
    """
    deadline = time.monotonic() + patience
    while not (told := condition()):
        if needs is not None and needs.poll() is not None:
            raise Failed(f"{what}: a program has ended before that, with {needs.returncode}")
        if time.monotonic() > deadline:
            raise Failed(f"not within {patience:.0f} s: {what}")
        time.sleep(POLL)
    return told
