"""Polls until something is true."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

PATIENCE = 60.0  # seconds
POLL = 0.02

T = TypeVar("T")


def until(
    claim: Callable[[], T | None],
    otherwise: str,
    patience: float = PATIENCE,
    poll: float = POLL,
    away: tuple[type[Exception], ...] = (),
) -> T:
    """Poll `claim`, which may raise `away`, until it is true; returns it. Raises TimeoutError."""
    deadline = time.monotonic() + patience
    while True:
        with suppress(*away):
            if answer := claim():
                return answer
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(poll)
