"""Delivering a backlog of receipts with two workers, to a receiver that answers at once.

The rides are in the log before a worker runs. The rate is that of outcomes in Postgres, from the
first to the last. The limit is the HTTP client alone: as many processes send as many receipts at
once to the same receiver, and use neither Redis nor Postgres.
"""

import asyncio
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal

from consumers.receipts.courier import Courier
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind
from lab.benchmarks import fleet, outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.receiver import receiver
from lab.benchmarks.stand import Stand, value
from lab.until import until
from rocket_rides.settings import DEMO_SECRET, Settings

ROUNDS = 3
BACKLOG = 20_000
PATIENCE = 120.0  # seconds
AT_ONCE: int = Settings.model_fields["receipt_concurrency"].default
TIMEOUT: float = Settings.model_fields["receipt_timeout"].default

TAKEN = "SELECT coalesce(max(id), 0) FROM rides"
SENT = "SELECT last_sent_id FROM streamer_state"
DELIVERED = "SELECT sum(delivered) FROM receipts_workers"
RATE = """
    SELECT count(*) / extract(epoch FROM max(decided_at) - min(decided_at)) FROM receipts
    WHERE ride_id > %s AND outcome = 'delivered'
"""


def measure(stand: Stand) -> list[Figure]:
    """One run first that does not count: its workers create the group that keeps the log."""
    name, goal = f"Receipts of {BACKLOG:,} rides", Goal("value", ">=", 1000)
    rate = Figure(name, "receipts/s", "its client alone", goal)
    with stand.services(fleet.STREAMER), receiver(stand) as url:
        _delivered(stand, url, 1000)
        rate.measure(ROUNDS, lambda: _delivered(stand, url, BACKLOG), lambda: _alone(url))
    return [rate]


def _delivered(stand: Stand, url: str, rides: int) -> float:
    with stand.connect() as connection:
        after, before = value(connection, TAKEN), value(connection, DELIVERED)
        outbox.stage(connection, rides)
        last = value(connection, TAKEN)
        until(lambda: value(connection, SENT) >= last, "not every ride gets into the log")
        with fleet.workers(stand, url):
            late = "not every receipt gets delivered"
            until(lambda: value(connection, DELIVERED) >= before + rides, late, PATIENCE)
        return value(connection, RATE, after)


def _alone(url: str) -> float:
    couriers = len(fleet.WORKERS)
    with ProcessPoolExecutor(couriers, multiprocessing.get_context("spawn")) as pool:
        spans = [*pool.map(send, [url] * couriers, [BACKLOG // couriers] * couriers)]
    return BACKLOG / (max(ended for _, ended in spans) - min(began for began, _ in spans))


def send(url: str, count: int) -> tuple[float, float]:
    """When sending so many began and ended, on the monotonic clock. Raises RuntimeError."""
    return asyncio.run(_send(url, count))


async def _send(url: str, count: int) -> tuple[float, float]:
    numbers = iter(range(count))
    async with Courier(url, [DEMO_SECRET]) as courier:

        async def one_after_another() -> None:
            for number in numbers:
                receipt = Receipt(number, Decimal("539.837"), datetime.now(UTC), f"msg_{number}")
                verdict = await courier.deliver(receipt, TIMEOUT)
                if verdict.kind is not Kind.DELIVERED:
                    raise RuntimeError(f"the receiver did not accept a receipt: {verdict.reason}")

        began = time.monotonic()
        async with asyncio.TaskGroup() as senders:
            for _ in range(AT_ONCE):
                senders.create_task(one_after_another())
    return began, time.monotonic()
