"""Failure injection: a hook at each named step of a process, ignored unless somebody listens.

A process says `reached(BatchStep.BEFORE_COMMIT)` where a crash would be interesting. To have one
there, wrap the work in `with crash_at(BatchStep.BEFORE_COMMIT)`: it is raised at that step.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum

Listener = Callable[[Enum], None]


class InjectedCrash(Exception):
    """Injected crash."""

    def __init__(self, step: Enum) -> None:
        super().__init__(f"injected crash {step.value}")
        self.step = step


def _ignore(step: Enum) -> None:
    pass


_listener: ContextVar[Listener] = ContextVar("listener", default=_ignore)


def reached(step: Enum) -> None:
    """Announce that this step of the work is reached. Raises what the listener raises."""
    _listener.get()(step)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with each step that this thread reaches in the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def crash_at(step: Enum | None) -> AbstractContextManager[None]:
    """Raise InjectedCrash when this thread reaches `step` in the block; None means never."""

    def crash(here: Enum) -> None:
        if here is step:
            raise InjectedCrash(here)

    return listening(crash) if step else nullcontext()


def crashing(rate: float, *steps: Enum) -> AbstractContextManager[None]:
    """Raise InjectedCrash at one of these steps, at the given rate."""
    return crash_at(random.choice(steps) if strikes(rate) else None)


def strikes(rate: float) -> bool:
    """True at the given rate, from 0 (never) to 1 (always)."""
    return rate > 0 and random.random() < rate
