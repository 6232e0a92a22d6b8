"""How many records a transaction takes at most: as many as its time allows."""

import logging

from unified_log.words import count

logger = logging.getLogger("consumer")

GROWS = 1.02  # times, with each transaction of as many as it may take


class Limit:
    """At first `most`; over all sessions of a process.

    Postgres ends a session that is idle in a transaction for too long: where Python works for so
    long, the same batch would fail for ever. So half as many are taken next, and then slowly more
    again, since it may have been the machine that was slow.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._now = float(most)

    @property
    def now(self) -> int:
        return int(self._now)

    def kept(self, records: int) -> None:
        """So many were taken."""
        if records >= self.now:
            self._now = min(self._most, self._now * GROWS)

    def exceeded(self, records: int) -> None:
        """So many were too many."""
        self._now = max(1, records / 2)
        taken = count(records, "record")
        logger.warning("it takes too long to take %s at once: next, it is %d", taken, self.now)
