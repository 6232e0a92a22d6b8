"""What it means that a receiver declines: it refuses this receipt, or is ill and takes none.

A 404 may be about one ride, or about the address; a 401 about one body, or about a secret that
somebody has just changed. One answer does not tell; what becomes of other receipts does:

    declined ──▶ another attempt ──▶ declined again, and others were taken ──▶ dead: refused
        ▲             ▲   ▲   │  └─▶ delivered
        │             │   │   └────▶ declined again, and none was taken ──┐
        │             │   └── this attempt counts; if it is the last: dead ──┤
        │             └────── it declines all: this attempt is excused ──────┘

* *Others were taken*: after this one was declined, and before it was sent again, another one was
  taken, as this worker was answered. So where receipts come and go, one that is refused is dead
  after its second attempt, a second later; and none is dead because all were declined for a while.
* *It declines all*: SEVERAL receipts were declined for the first time since one was taken. This
  says nothing against any of them, as if the receiver were away; `breaker` holds the others back,
  and says why. It lasts until one is taken: also where the address was wrong from the start.
* Else few receipts come, and this one may use up its attempts.

Each worker judges by its own answers, and forgets them when it ends. That another one was declined
this receipt, it sees by the reason in its row; that was a delay ago, at least.
"""

import math
import time
from collections.abc import Callable

from consumers.receipts.queue import SHORTEST_DELAY, Attempt
from consumers.receipts.verdict import Kind, Verdict, have_one_status

SEVERAL = 5
MOST_KNOWN = 10_000  # receipts; some of them are decided by other workers


class Refusals:
    """What one worker knows of receipts that were declined. `clock` is the one of its attempts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.taken_at = -math.inf  # when the last receipt was taken
        self._declined_at: dict[int, float] = {}  # by ride: the first time, as far as is known
        self._since_taken: set[int] = set()  # rides that were declined for the first time

    def decide(self, attempt: Attempt, verdict: Verdict, began: float, taken_at: float) -> Verdict:
        """What is to be written down of an attempt that has ended so.

        It `began` then, and `taken_at` is what that was when it did.
        """
        ride_id = attempt.receipt.ride_id
        if verdict.kind is not Kind.DECLINED:
            if verdict.kind is Kind.DELIVERED:
                self.taken_at = self._clock()
                self._since_taken.clear()
            self._declined_at.pop(ride_id, None)
            return verdict
        if have_one_status(verdict.reason, attempt.reason):
            before = self._declined_at.setdefault(ride_id, began - SHORTEST_DELAY)
            if taken_at > before and len(self._since_taken - {ride_id}) < SEVERAL:
                del self._declined_at[ride_id]
                self._since_taken.discard(ride_id)
                return verdict._replace(kind=Kind.REFUSED)
        else:
            self._declined_at[ride_id] = self._clock()
            self._since_taken.add(ride_id)
        if len(self._declined_at) > MOST_KNOWN:
            del self._declined_at[next(iter(self._declined_at))]
        declines_all = len(self._since_taken) >= SEVERAL
        return verdict._replace(kind=Kind.AWAY if declines_all else Kind.RETRY)
