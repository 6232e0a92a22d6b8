"""Failure injection: a crash at a chosen step, raised and handled inside the process."""

import random
from enum import Enum


class InjectedCrash(Exception):
    """Injected crash."""

    def __init__(self, step: Enum) -> None:
        super().__init__(f"injected crash {step.value}")
        self.step = step


def crash(step: Enum, crash_at: Enum | None) -> None:
    """Mark a numbered step of a process; raise InjectedCrash when `crash_at` is this step."""
    if step is crash_at:
        raise InjectedCrash(step)


def strikes(rate: float) -> bool:
    """True at the given rate, from 0 (never) to 1 (always)."""
    return rate > 0 and random.random() < rate
