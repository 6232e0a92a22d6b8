"""Waiting for what takes its time."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 60.0  # seconds
POLL = 0.02

T = TypeVar("T")


def until(claim: Callable[[], T], otherwise: str, patience: float = PATIENCE) -> T:
    """Ask until the answer is true, and return it. Raises TimeoutError, which says `otherwise`."""
    deadline = time.monotonic() + patience
    while not (answer := claim()):
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(POLL)
    return answer
