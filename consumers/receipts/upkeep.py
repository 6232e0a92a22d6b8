"""What a worker does beside its deliveries, now and then: the sweep, and what goes with it.

The sweep proves that the inbox is complete: it puts there each settled ride that the log has not
brought. It looks up to the `last_sent` that it saw SWEEP_AFTER ago, by a clock that nobody sets:
what was sent then, and is no row yet, is lost, and not merely unread.
"""

import time

from consumers.receipts.queue import Queue
from consumers.receipts.round import Round

LOOKS, LONGEST_PAUSE = 3, 10.0  # looks in SWEEP_AFTER; seconds between two


class Upkeep:
    """One worker's, over all of its sessions."""

    def __init__(self, sweep_after: float) -> None:
        self.due = 0.0  # on the monotonic clock
        self._sweep_after = sweep_after
        self._seen: list[tuple[float, int]] = []  # when, and how far the streamer was

    async def run(self, queue: Queue, done: Round) -> None:
        """Do what is due. Raises psycopg.Error or StateLost."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + min(self._sweep_after / LOOKS, LONGEST_PAUSE)
        await queue.make_due()
        done.dead |= await queue.bury()
        swept = await queue.sweep(self._settled(now))
        done.swept += swept.rides
        goes_on = swept.is_behind and await queue.complete()
        if self._seen and swept.last_sent < self._seen[-1][1]:  # the database was restored
            self._seen.clear()
        self._seen.append((now, swept.last_sent))
        if swept.goes_on or goes_on:
            self.due = now

    def _settled(self, now: float) -> int:
        """The newest `last_sent` that was seen SWEEP_AFTER ago, or earlier."""
        seen = [upto for at, upto in self._seen if at <= now - self._sweep_after]
        del self._seen[: max(0, len(seen) - 1)]
        return seen[-1] if seen else 0
