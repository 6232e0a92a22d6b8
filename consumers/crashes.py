"""Counting injected crashes: each undoes its own transaction, so it is counted by a later one.

The process owes the count, over all of its sessions, and settles it before it works again. So a
SIGKILL, or the process' end, between a crash and the next session loses the count of one crash.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from consumers.checkpoint import Checkpoint
from rocket_rides.faults import InjectedCrash


class Crashes:
    """The injected crashes of one process that are yet to be counted with its checkpoint."""

    def __init__(self) -> None:
        self._owed = 0
        self._tried: int | None = None  # what was to be written when a commit's answer was lost

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note an injected crash of the block."""
        try:
            yield
        except InjectedCrash:
            self._owed += 1
            raise

    def settle(self, connection: psycopg.Connection, checkpoint: Checkpoint) -> None:
        """Count what is owed, in a transaction of its own. Raises psycopg.Error; then it is owed.

        If only the answer to an earlier attempt's commit was lost, the count is there already. (A
        second process of the same name may by chance have made it so; then a crash is not counted.)
        """
        if not self._owed:
            return
        with connection.transaction():
            counted = checkpoint.crashes()
            if counted is not None and counted != self._tried:
                self._tried = counted + self._owed
                checkpoint.set_crashes(self._tried)
        self._owed, self._tried = 0, None
