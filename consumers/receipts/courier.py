"""Delivers receipts: signs each, posts it to the receiver, and says what came of it."""

from enum import Enum
from types import TracebackType
from typing import NamedTuple, Self

from consumers.receipts.receipt import Receipt


class Kind(Enum):
    """What an attempt came to."""

    DELIVERED = "delivered"
    RETRY = "retry"
    """The receiver asked for another attempt, or failed in a way that may pass."""
    AWAY = "away"
    """Nobody took the request: no address, no connection, no TLS. Says nothing about the receipt."""
    REFUSED = "refused"
    """No other attempt would end differently."""


class Verdict(NamedTuple):
    """What an attempt came to, why, and when to make the next one.

    `reason` is one line of printable text, never empty. `retry_after`, in seconds, is what the
    receiver asked for, bounded by LONGEST_RETRY_AFTER; None when it named no time.
    """

    kind: Kind
    reason: str
    retry_after: float | None = None


class Courier:
    """Up to `concurrency` attempts at once, each within `timeout` seconds in all.

    For one thread. `url` and `secret` are as `rocket_rides.settings` takes them.
    """

    def __init__(self, url: str, secret: str, concurrency: int, timeout: float) -> None:
        raise NotImplementedError

    @property
    def room(self) -> int:
        """How many more receipts can be started now."""
        raise NotImplementedError

    def start(self, receipt: Receipt) -> None:
        """Begin one attempt, without waiting. Call it only while there is `room`."""
        raise NotImplementedError

    def finished(self, wait: float, wake: int | None = None) -> list[tuple[Receipt, Verdict]]:
        """All attempts that have ended since the last call.

        Waits up to `wait` seconds for the first, or until the file descriptor `wake` is readable.
        """
        raise NotImplementedError

    def cancel(self) -> list[Receipt]:
        """Give up what is under way; returns it. Its receiver may have it all the same."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        raise NotImplementedError
