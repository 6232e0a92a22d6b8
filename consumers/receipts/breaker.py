"""A circuit breaker: while the receiver fails for everyone, it is asked rarely and about one ride.

After TRIP failures without a success between them, the worker sends nothing for a while. It reads
on. Then it makes one attempt, with the receipt that has been due the longest, or a quarantined one,
and, depending on how that ends, goes on or pauses again, for longer. So however long the receiver
is away and however much waits for it, each worker soon asks it a dozen times a minute at most; and
as each time it is another receipt's turn, a receipt uses up its attempts only if few wait, and if
the receiver took each request and then failed.

A receiver that declines is there, and is asked every two seconds: perhaps the next receipts in the
queue are just those that it never takes.
"""

import logging
import time
from collections.abc import Callable

from consumers.receipts.verdict import Kind, Verdict
from unified_log.waiting import LimitedWarning, delays

logger = logging.getLogger("consumer")

TRIP = 10  # failures
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds
LONGEST_IF_DECLINED = 2.0


class Breaker:
    """What one worker knows of its receiver, which may have `most` attempts under way at once."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._failures, self._until = 0, 0.0
        self._pauses = delays(FIRST_PAUSE, LONGEST_PAUSE)
        self._warn = LimitedWarning()

    @property
    def is_open(self) -> bool:
        """Whether the receiver has failed so often that it is only probed."""
        return self._failures >= TRIP

    @property
    def pause(self) -> float:
        """Seconds until the next attempt may be made; 0 when one may be made now."""
        return max(0.0, self._until - self._clock()) if self.is_open else 0.0

    @property
    def limit(self) -> int:
        """How many attempts may be under way now."""
        if not self.is_open:
            return self._most
        return 0 if self.pause else 1

    def note(self, verdict: Verdict) -> None:
        """An attempt has ended."""
        if verdict.kind in (Kind.DELIVERED, Kind.REFUSED):  # whatever it says, it is there
            if self.is_open:
                logger.info("the receiver takes receipts again")
            self._begin_anew()
            return
        self._failures += 1
        # Of those that were under way together, the first failure speaks for all.
        if self.is_open and not self.pause:
            longest = LONGEST_IF_DECLINED if verdict.kind is Kind.DECLINED else LONGEST_PAUSE
            pause = min(next(self._pauses), longest)
            self._until = self._clock() + max(pause, verdict.retry_after)
            self._warn(f"the receiver takes no receipts: {verdict.reason}")
