"""Polls until something is true."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 60.0  # seconds
POLL = 0.02

T = TypeVar("T")


def until(
    claim: Callable[[], T | None], otherwise: str, patience: float = PATIENCE, poll: float = POLL
) -> T:
    """Poll `claim` until it is true, and return its value. Raises TimeoutError(otherwise)."""
    deadline = time.monotonic() + patience
    while not (answer := claim()):
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(poll)
    return answer
