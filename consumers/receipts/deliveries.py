"""Deliveries: attempts under way, and those that have ended and are not written down yet.

They outlive a session with Postgres and Redis. When one of those fails, what
was sent stays sent, and what came of it is written down by the next session: so an outage on our
side makes nobody get a receipt twice, and no attempt count against a receipt. That is, unless it
lasts until others may take over what is under way: for CLAIM_AFTER, or where only this worker's
connection fails for GONE_AFTER (`membership`). Then they may attempt it too.
"""

from consumers.receipts.breaker import Breaker
from consumers.receipts.courier import Courier
from consumers.receipts.outcomes import Ended
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind, Verdict

NO_TIME = Verdict(Kind.REFUSED, "the ride's created_at is a time that no receipt can state")


class Deliveries:
    """What one worker process has under way, by ride."""

    def __init__(self, courier: Courier, breaker: Breaker) -> None:
        self.under_way: dict[int, tuple[int, int]] = {}  # ride -> number, forgiven: see Ended
        self.unsaved: dict[int, Ended] = {}
        self.breaker = breaker
        self._courier = courier

    def __contains__(self, ride_id: object) -> bool:
        return ride_id in self.under_way or ride_id in self.unsaved

    @property
    def room(self) -> int:
        """How many more attempts may be started now."""
        return self.breaker.allows(len(self.under_way), self._courier.room)

    def start(self, receipt: Receipt, number: int, forgiven: int) -> None:
        """Make the `number`-th attempt since the last replay, while there is `room`."""
        self._courier.start(receipt)
        self.under_way[receipt.ride_id] = number, forgiven

    def end(self, receipt: Receipt, verdict: Verdict, number: int, forgiven: int) -> None:
        """Have it written down without having sent anything."""
        self.unsaved[receipt.ride_id] = Ended(receipt, verdict, number, forgiven)

    def wait(self, seconds: float) -> None:
        """Wait for the first to end, but not longer; what has ended is then in `unsaved`."""
        for receipt, verdict in self._courier.finished(seconds):
            self.breaker.note(verdict)
            self.end(receipt, verdict, *self.under_way.pop(receipt.ride_id))

    def forget(self) -> None:
        """Lose everything, as a crash would."""
        self._courier.cancel()
        self.under_way.clear()
        self.unsaved.clear()
