"""Couriers in the test's own process, and the receipts that they deliver."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from decimal import Decimal
from typing import Protocol

from consumers.receipts.courier import Courier
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Verdict
from rocket_rides.settings import DEMO_SECRET
from tests.support.receiver import Receiver

LONG = 20.0  # seconds; no test waits for this time-out
SHORT = 0.3  # seconds; for those that do
SECRETS = [f"whsec_{b64encode(b'new' * 8).decode()}", DEMO_SECRET]  # the old one last


def receipt(number: int = 1) -> Receipt:
    taken = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)
    return Receipt(number, Decimal("539.837"), taken, f"receipt_{number}")


class Deliver(Protocol):
    """Returns the verdicts on the receipts of rides, all sent at once."""

    def __call__(
        self, *rides: int, seconds: float = LONG, beside: Receiver | None = None
    ) -> list[Verdict]: ...


class Couriers:
    """Couriers on an event loop, which runs only while a test waits for something."""

    def __init__(self, closing: ExitStack) -> None:
        self._runner = closing.enter_context(asyncio.Runner())
        self._closing = closing

    def __call__(self, url: str, clock: Callable[[], float] = time.monotonic) -> Deliver:
        """What delivers to this address.

        With `beside`, the first ride's receipt is on its way to that receiver before the others
        are sent, and nobody waits for its verdict.
        """
        courier = Courier(url, SECRETS, clock)
        self._runner.run(courier.__aenter__())
        self._closing.callback(lambda: self._runner.run(courier.__aexit__()))

        async def deliver(
            rides: tuple[int, ...], seconds: float, beside: Receiver | None
        ) -> list[Verdict]:
            tasks = []
            for ride in rides:
                tasks.append(asyncio.create_task(courier.deliver(receipt(ride), seconds)))
                while beside and not (beside.rides[rides[0]] or tasks[0].done()):
                    await asyncio.sleep(0.01)
            if not beside:
                return await asyncio.gather(*tasks)
            first, *others = tasks
            verdicts = await asyncio.gather(*others)
            first.cancel()
            return verdicts

        def run(
            *rides: int, seconds: float = LONG, beside: Receiver | None = None
        ) -> list[Verdict]:
            return self._runner.run(deliver(rides or (1,), seconds, beside))

        return run
