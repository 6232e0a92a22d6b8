"""Waiting for a server that is lost: for how long, and what is said meanwhile."""

import logging
import random
import time
from collections.abc import Iterable, Iterator

logger = logging.getLogger(__name__)

FIRST_DELAY = 0.05
LONGEST_DELAY = 2.0
REPEAT_AFTER = 10.0
STARTING_UP = 5.0  # for so long, waiting for a server is nothing to warn about
AN_HOUR = 3600.0


def delays(first: float = FIRST_DELAY, longest: float = LONGEST_DELAY) -> Iterator[float]:
    """Exponential back-off with full jitter in its upper half, in seconds, without end."""
    delay = first
    while True:
        yield delay * random.uniform(0.5, 1)
        delay = min(delay * 2, longest)


class Progress:
    """What a process says of how it is doing, over all of its sessions: once per real change."""

    def __init__(self) -> None:
        self.waits = delays()  # between attempts, since the last progress
        # A server may just be coming up, together with us.
        self._complaint = Complaint(STARTING_UP)
        self._announced = self._held_back = ""
        self._in_trouble = False
        self._is_new = True

    def announce(self, line: str) -> None:
        """Log `line`, unless it was the last one; after a failure, once there is progress."""
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
            self.waits, self._complaint = delays(), Complaint()
            self._in_trouble, self._announced = False, ""
            if self._held_back:
                self.announce(self._held_back)

    def _has_started(self) -> None:
        if self._is_new:
            self._is_new, self._complaint = False, Complaint()

    def failed(self, reason: str) -> None:
        """Nothing works, and why: a warning, but of a process that has only just been started."""
        if self._is_new and not self._in_trouble:
            logger.info("waiting: %s", reason)
        self._in_trouble, self._held_back = True, ""
        self._complaint(reason)


class Complaint:
    """Says why a process waits: after `patience` seconds, and again every REPEAT_AFTER."""

    def __init__(self, patience: float = 0) -> None:
        self._said = ""
        self._quiet_until = time.monotonic() + patience
        self._due = 0.0

    def __call__(self, reason: str) -> None:
        now = time.monotonic()
        if now >= self._quiet_until and (reason != self._said or now >= self._due):
            logger.warning("%s; trying again until it works", reason)
            self._said, self._due = reason, now + REPEAT_AFTER


class Once:
    """Lines that are logged when they become true, and while they stay so, once an hour."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._due: dict[str, float] = {}

    def say(self, lines: Iterable[str]) -> None:
        """Log those of the lines, which are all that is true now, whose time has come."""
        now = time.monotonic()
        was_due, self._due = self._due, {}
        for line in lines:
            due = was_due.get(line, now)
            if now >= due:
                logger.log(self._level, line)
                due = now + AN_HOUR
            self._due[line] = due
