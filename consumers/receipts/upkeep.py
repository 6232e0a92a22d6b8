"""What a worker does beside its deliveries, now and then: the sweep, and what goes with it.

The sweep proves that the inbox is complete: it puts there each settled ride that the log has not
brought. It looks up to the `last_sent` that it saw SWEEP_AFTER ago, by a clock that nobody sets:
what was sent then, and is no row yet, is lost, and not merely unread.
"""

import logging
import time
from dataclasses import dataclass, field

from consumers.receipts.queue import Queue
from consumers.receipts.statements import COMPLETE, MAKE_DUE, SWEEP
from unified_log.errors import Unavailable
from unified_log.words import count

logger = logging.getLogger("consumer")

LOOKS, LONGEST_PAUSE = 3, 10.0  # looks in SWEEP_AFTER; seconds between two
PAGE = 10_000  # rides that are looked at at once
NO_STATE = (
    "streamer_state or receipts_state is empty: the streamer says how to restore streamer_state;"
    " restore the row of receipts_state from a backup"
)


@dataclass
class Upkeep:
    """One worker's, over all of its sessions."""

    sweep_after: float  # seconds
    due: float = 0.0  # on the monotonic clock
    _seen: list[tuple[float, int]] = field(default_factory=list)  # when, how far the streamer was

    async def run(self, queue: Queue) -> None:
        """Do what is due. Raises psycopg.Error; Unavailable where a state is gone."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + min(self.sweep_after / LOOKS, LONGEST_PAUSE)
        await queue.do(MAKE_DUE)
        found = await queue.do(SWEEP, upto=self._settled(now), page=PAGE)
        if not found:
            raise Unavailable(NO_STATE)
        [(last_sent, goes_on, lost, is_behind)] = found
        if lost:
            what = f"{count(len(lost), 'ride')} that the log has not brought"
            logger.warning("taking up %s, from ride %d to %d", what, lost[0], lost[-1])
        if is_behind:
            goes_on |= await queue.do(COMPLETE, page=PAGE) == [(True,)]
        if self._seen and last_sent < self._seen[-1][1]:  # the database was restored
            self._seen.clear()
        self._seen.append((now, last_sent))
        if goes_on:
            self.due = now

    def _settled(self, now: float) -> int:
        """The newest `last_sent` that was seen SWEEP_AFTER ago, or earlier."""
        seen = [upto for at, upto in self._seen if at <= now - self.sweep_after]
        del self._seen[: max(0, len(seen) - 1)]
        return seen[-1] if seen else 0
