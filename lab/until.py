"""Polls until something is true."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 60.0  # seconds
POLL = 0.02

T = TypeVar("T")


def until(
    claim: Callable[[], T | None],
    otherwise: str,
    patience: float = PATIENCE,
    poll: float = POLL,
    rarely: float = 1,
) -> T:
    """Poll `claim` until it is true, and return its value. Raises TimeoutError(otherwise).

    After a second it is polled less and less often, up to `rarely` times: each poll costs CPU.
    """
    began = time.monotonic()
    while not (answer := claim()):
        waited = time.monotonic() - began
        if waited > patience:
            raise TimeoutError(otherwise)
        time.sleep(poll * min(max(waited, 1), rarely))
    return answer
