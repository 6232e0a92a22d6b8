"""Counting injected crashes: each undoes its own transaction, so it is counted by a later one.

The process owes the count, over all of its sessions, and settles it before it works again. What it
owes is lost with it, or with the connection on which it settles: no state depends on it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from unified_log.faults import InjectedCrash
from unified_log.readers.checkpoint import Checkpoint


class Crashes:
    """The injected crashes of one process that are yet to be counted with its checkpoint."""

    def __init__(self) -> None:
        self._owed = 0

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note an injected crash of the block."""
        try:
            yield
        except InjectedCrash:
            self._owed += 1
            raise

    def settle(self, checkpoint: Checkpoint) -> None:
        """Count what is owed, in a transaction of its own. Raises psycopg.Error."""
        owed, self._owed = self._owed, 0
        if owed:
            checkpoint.add_crashes(owed)
