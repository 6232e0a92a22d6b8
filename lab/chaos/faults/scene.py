"""What a fault is, and what it acts on."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import redis

from demo.embedded.failures import ServerFailed
from lab.chaos.backup import Backup
from lab.chaos.evidence import Journal, Restore
from lab.chaos.fleet import Fleet
from lab.chaos.runs import Runs
from unified_log.errors import Unavailable

PATIENCE = 10.0  # seconds for the next run, for its Java, for Postgres, or for a victim
AGAIN = 0.1


class Moot(Exception):
    """The fault could not be injected now: its victim was down, or busy with another fault."""


@dataclass
class Scene:
    """The fleet, whether the faults are over, and what they did that the judges must know."""

    fleet: Fleet
    journal: Journal
    over: threading.Event = field(default_factory=threading.Event)
    restores: list[Restore] = field(default_factory=list)
    backup: Backup | None = None  # the newest

    runs: Runs | None = None  # None where the job can't run
    drifting: threading.Lock = field(default_factory=threading.Lock)  # held while a drift is made

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`, but no longer than the faults go on."""
        self.over.wait(seconds)

    def tries(self) -> Iterator[None]:
        """Once, and again for PATIENCE seconds, but no longer than the faults go on."""
        deadline = time.monotonic() + PATIENCE
        yield
        while time.monotonic() < deadline and not self.over.wait(AGAIN):
            yield


# Injects the fault, waits, and undoes it; returns what it hit, or raises Moot. All randomness comes
# from the dice, so that the seed decides it.
Fault = Callable[[Scene, random.Random], str]


@contextmanager
def held(lock: threading.Lock, patience: float = 0) -> Iterator[None]:
    """Hold the lock of what a fault acts on. Raises Moot after `patience` seconds without it."""
    if not lock.acquire(timeout=patience):
        raise Moot
    try:
        yield
    finally:
        lock.release()


@contextmanager
def moot_if_away() -> Iterator[None]:
    """The fault is moot if the server that the block talks to is down, or goes down."""
    try:
        yield
    except (ServerFailed, Unavailable, psycopg.Error, redis.RedisError):
        raise Moot from None
