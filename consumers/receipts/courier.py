"""Delivers receipts: signs each, posts it to the receiver, and says what came of it.

An attempt is one POST, signed after Standard Webhooks with the time of that attempt; if it was sent
on a kept connection that turns out to be dead, it is sent again on a new one. It has one time limit
in all, from the look-up of the address to the end of the answer. `verdict` says what an answer
means, `transfers` how the requests are made.

A process that dies in an attempt leaves open whether the receiver has the receipt. It holds nothing
that others would need: the next attempt is like the first.
"""

import time
from datetime import UTC, datetime
from typing import Self

from standardwebhooks import Webhook

from consumers.receipts.receipt import Receipt
from consumers.receipts.transfers import Transfers, options
from consumers.receipts.verdict import Kind, Verdict

__all__ = ["Courier", "Kind", "Verdict"]


class Courier:
    """Up to `concurrency` attempts at once, each within `timeout` seconds in all; for one thread.

    `url` and `secret` are as `rocket_rides.settings` takes them.
    """

    def __init__(self, url: str, secret: str, concurrency: int, timeout: float) -> None:
        self._webhook = Webhook(secret)
        self._transfers = Transfers[Receipt](options(url, timeout), concurrency, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._transfers.close()

    @property
    def room(self) -> int:
        """How many more receipts can be started now."""
        return self._transfers.room

    def start(self, receipt: Receipt) -> None:
        """Begin one attempt, without waiting for anything. Only while there is `room`."""
        body = receipt.body()
        now = datetime.fromtimestamp(int(time.time()), UTC)
        headers = [
            "content-type: application/json",
            f"webhook-id: {receipt.webhook_id}",
            f"webhook-timestamp: {now.timestamp():.0f}",
            f"webhook-signature: {self._webhook.sign(receipt.webhook_id, now, body.decode())}",
        ]
        self._transfers.begin(receipt, headers, body)

    def finished(self, wait: float, wake: int | None = None) -> list[tuple[Receipt, Verdict]]:
        """All attempts that have ended since the last call.

        Waits up to `wait` seconds for the first, or until the file descriptor `wake` is readable.
        """
        return self._transfers.ended(wait, wake)

    def cancel(self) -> list[Receipt]:
        """Give up what is under way, and return it. Its receiver may have it all the same."""
        return self._transfers.cancel()
