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
    rarely: float = 1,
) -> T:
    """Poll `claim`, which may raise `away`, until it is true; returns it. Raises TimeoutError.

    After a second it is polled less and less often, up to `rarely` times: each poll costs CPU.
    What is true only for a while has to be so for `rarely * poll`.
    """
    began = time.monotonic()
    while True:
        with suppress(*away):
            if answer := claim():
                return answer
        waited = time.monotonic() - began
        if waited > patience:
            raise TimeoutError(otherwise)
        time.sleep(poll * min(max(waited, 1), rarely))
