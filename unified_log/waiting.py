"""Waiting for a lost server: how long, and what is logged meanwhile."""

import logging
import random
import time
from collections.abc import Iterator
from threading import Lock

logger = logging.getLogger(__name__)

FIRST_DELAY = 0.05  # seconds
LONGEST_DELAY = 2.0
REPEAT_AFTER = 10.0
STARTING_UP = 20.0  # seconds in which waiting for a server is no reason for a warning


def delays(first: float = FIRST_DELAY, longest: float = LONGEST_DELAY) -> Iterator[float]:
    """Exponential back-off with jitter over the upper half of each delay, in seconds, endless."""
    delay = first
    while True:
        yield delay * random.uniform(0.5, 1)
        delay = min(delay * 2, longest)


class Progress:
    """What a process logs about its state, over all of its sessions: one line per real change."""

    def __init__(self) -> None:
        self.waits = delays()  # between attempts, since the last progress
        # A server may just be coming up, together with us.
        self._warn = LimitedWarning(STARTING_UP)
        self._announced = self._held_back = ""
        self._in_trouble = False
        self._is_new = True

    def announce(self, line: str) -> None:
        """Log `line`, unless it repeats the last one; after a failure, wait for progress first."""
        if self._in_trouble:
            self._held_back = line
        elif line != self._announced:
            logger.info(line)
            self._announced = line
            self._has_started()

    def made(self) -> None:
        """Something worked: a failure is over."""
        self._has_started()
        if self._in_trouble:
            self.waits, self._warn = delays(), LimitedWarning()
            self._in_trouble, self._announced = False, ""
            if self._held_back:
                self.announce(self._held_back)

    def _has_started(self) -> None:
        if self._is_new:
            self._is_new, self._warn = False, LimitedWarning()

    def failed(self, reason: str) -> None:
        """Report why nothing works: a warning, except while the process is just starting up."""
        if self._is_new and not self._in_trouble:
            logger.info("waiting: %s", reason)
        self._in_trouble, self._held_back = True, ""
        self._warn(reason)


class LimitedWarning:
    """Warns why a process waits, if it does so for `patience` seconds.

    Then it warns of each new reason at once, and of the same one every REPEAT_AFTER seconds. Many
    threads may share it.
    """

    def __init__(self, patience: float = 0) -> None:
        self._said = ""
        self._quiet_until = time.monotonic() + patience
        self._due = 0.0
        self._lock = Lock()

    def __call__(self, reason: str) -> None:
        now = time.monotonic()
        with self._lock:
            if now < self._quiet_until or (reason == self._said and now < self._due):
                return
            self._said, self._due = reason, now + REPEAT_AFTER
        logger.warning("%s; trying again until it works", reason.rstrip("."))
