"""What it means that a receiver declines: it refuses this receipt, or is ill and takes none.

A 404 may be about one ride, or about the address; a 401 about one body, or about a secret that
somebody has just changed. One answer does not tell; what becomes of other receipts does:

* *It declines all*: since one was taken, SEVERAL receipts were declined, for QUIET seconds or with
  IN_A_ROW answers. This says nothing against any of them, as if the receiver were away: the attempt
  is excused. After QUIET seconds `breaker` holds the others back, and says why. It lasts until one
  is taken: also where the address was wrong from the start.
* *It refuses this one*: it was declined SURE times or more, and of the others that were answered
  since this worker first saw that, at least TAKEN were taken, and MOST_OF_THEM times as many as
  were declined. Then it is dead, seconds after its first attempt where many receipts come.
* Else the attempt counts, and another follows: few others come to tell, or the receiver is ill now
  and then, or it refuses much. A receipt that is never taken uses up its attempts, which takes a
  quarter of an hour.

Each worker judges by its own answers, and forgets them when it ends. So after a restart it takes
nothing for granted, and no row tells it what a receiver said before.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from consumers.receipts.queue import Attempt
from consumers.receipts.verdict import Kind, Verdict

SEVERAL, QUIET, IN_A_ROW = 2, 2.0, 10  # receipts; seconds; answers
EXCUSED_FOR = 10.0  # seconds, and others come first: they may be taken
SURE, TAKEN, MOST_OF_THEM = 3, 10, 4
MOST_KNOWN = 10_000  # receipts; some of them are decided by other workers


class Known(NamedTuple):
    """How many answers this worker had had when it first saw a receipt declined.

    `times` is how often it has seen that since.
    """

    taken: int
    declined: int
    times: int = 0


class Refusals:
    """What one worker knows of receipts that were declined. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.taken = 0  # receipts, by this worker
        self._taken_at = -math.inf
        self._declined = 0  # answers
        self._since_taken: set[int] = set()  # rides that were declined, up to SEVERAL
        self._in_a_row = 0  # answers that declined, since one was taken
        self._known: dict[int, Known] = {}  # by ride

    def decide(self, attempt: Attempt, verdict: Verdict, taken: int) -> Verdict:
        """What is to be written down of an attempt that has ended so.

        `taken` is what that was when the attempt began: what was taken later may have been answered
        later, too.
        """
        ride_id = attempt.receipt.ride_id
        if verdict.kind is not Kind.DECLINED:
            if verdict.kind is Kind.DELIVERED:
                self.taken += 1
                self._taken_at = self._clock()
                self._in_a_row = 0
                self._since_taken.clear()
            self._known.pop(ride_id, None)
            return verdict
        self._declined += 1
        self._in_a_row += 1
        if len(self._since_taken) < SEVERAL:
            self._since_taken.add(ride_id)
        if self._refuses(attempt, taken):
            del self._known[ride_id]
            return verdict._replace(kind=Kind.REFUSED)
        if self._declines_all():
            return verdict._replace(kind=Kind.AWAY, retry_after=EXCUSED_FOR)
        return verdict._replace(kind=Kind.RETRY)

    def _refuses(self, attempt: Attempt, taken: int) -> bool:
        """Note that a receipt was declined; return whether that is about this receipt."""
        ride_id = attempt.receipt.ride_id
        known = self._known.get(ride_id, Known(self.taken, self._declined - 1))
        known = self._known[ride_id] = known._replace(times=known.times + 1)
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        others_taken = taken - known.taken
        others_declined = self._declined - known.declined - known.times
        return (
            attempt.number >= SURE
            and others_taken >= TAKEN
            and others_taken >= MOST_OF_THEM * others_declined
        )

    def _declines_all(self) -> bool:
        lasts = self.is_quiet or self._in_a_row >= IN_A_ROW
        return lasts and len(self._since_taken) >= SEVERAL

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was taken for a while."""
        return self._clock() - self._taken_at >= QUIET
