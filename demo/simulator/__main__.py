"""`python -m demo.simulator`: posts rides of random distance at random moments, and rates some.

Each ride has its own Idempotency-Key and is posted with it until the API answers, so that a lost
answer never makes two rides of one. Without `--rides` only a signal ends it.

It is also the customer that receives the rides' receipts at RECEIPT_URL, where that is an address
of this machine (`demo.simulator.customer`). Without that it posts rides all the same. While it
receives, SIGUSR1 puts the customer in a bad mood: for five seconds it refuses every receipt with a
503.

After a crash or a signal there are up to `--concurrency` rides of which the client does not know
whether they were taken. The API knows: each is there once, whole, or not at all.
"""

import argparse
import asyncio
import itertools
import logging
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from time import monotonic

import aiohttp

from demo import optional
from demo.simulator.client import Outcomes, post_ride, rate_ride, wait_for_api
from demo.simulator.customer import Customer
from demo.simulator.mood import BEGIN_BAD_MOOD
from rocket_rides import service, settings
from rocket_rides.settings import Settings
from unified_log import errors
from unified_log.process import Parser

logger = logging.getLogger("simulator")

SHORTEST, LONGEST = 5_000, 1_000_000  # millimetres
RATED = 1 / 3  # share of rides that are rated
TIMEOUT = 10.0  # seconds that the API may take to answer
REPORT_EVERY = 10.0
# Seconds that it may fall behind schedule: more would turn an outage of the API into a flood.
CATCH_UP = 1.0


def schedule(
    dice: random.Random, rate: float, rides: int | None
) -> Iterator[tuple[float, Decimal]]:
    """Yield when each ride is due, on the monotonic clock, and its distance in metres.

    A Poisson process of `rate` rides a second, however many clients take rides from it; with a
    rate of 0 every ride is due at once. Yields `rides` of them, or never ends.
    """
    due = monotonic()
    for _ in itertools.repeat(None) if rides is None else range(rides):
        if rate:
            due = max(due, monotonic() - CATCH_UP) + dice.expovariate(rate)
        yield due, Decimal(dice.randint(SHORTEST, LONGEST)).scaleb(-3)


async def simulate(config: Settings, given: argparse.Namespace, outcomes: Outcomes) -> None:
    """Post rides, and receive receipts meanwhile. SIGTERM and SIGINT cancel it."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 (a coroutine runs in a task)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    wanted = given.receipts if given.receipts is not None else given.rides is None
    customer = await receiving(config) if wanted else None
    dice = random.Random()
    rides = schedule(dice, given.rate, given.rides)

    async def post() -> None:
        for due, metres in rides:
            await asyncio.sleep(due - monotonic())
            ride = await post_ride(api, metres, outcomes)
            if ride and dice.random() < RATED:
                await rate_ride(api, ride, dice.randint(1, 5), outcomes)

    def report() -> None:
        logger.info("%s", outcomes)
        if customer and customer.counts:
            logger.info("%s", customer.report())

    async def report_now_and_then() -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY)
            report()

    async with aiohttp.ClientSession(
        base_url=f"{config.rides_url}/",
        timeout=aiohttp.ClientTimeout(TIMEOUT),
        connector=aiohttp.TCPConnector(limit=given.concurrency),
    ) as api:
        with suppress(asyncio.CancelledError):  # how a signal ends it
            await wait_for_api(api, config.rides_url)
            reporter = asyncio.create_task(report_now_and_then())
            async with asyncio.TaskGroup() as posters:
                for _ in range(given.concurrency):
                    posters.create_task(post())
            reporter.cancel()
        report()


async def receiving(config: Settings) -> Customer | None:
    """A customer that receives receipts; None, and a warning, where that is impossible."""
    if not config.signing_secrets:
        logger.warning("receipts can't be verified, so none are received: set RECEIPT_SECRET")
        return None
    customer = Customer(config.signing_secrets[0], random.Random())
    url = config.receiver_url
    # Before it listens, since whoever sends the signal first checks that it does.
    asyncio.get_running_loop().add_signal_handler(BEGIN_BAD_MOOD, customer.begin_bad_mood)
    try:
        await customer.open_at(url)
    except (OSError, UnicodeError) as error:
        logger.warning("receipts can't be received at %s: %s", url, errors.in_one_line(error))
        return None
    return customer


def arguments() -> argparse.Namespace:
    parser = Parser("python -m demo.simulator", __doc__)
    add = parser.add_argument
    add("--rides", type=int, metavar="N", help="stop after N rides (default: never)")
    add("--rate", type=float, default=2.0, help="rides a second; 0: no limit (default: 2)")
    add("--concurrency", type=int, default=1, metavar="C", help="rides at once")
    received = "receive the rides' receipts at RECEIPT_URL (default: yes, unless --rides is given)"
    add("--receipts", action=argparse.BooleanOptionalAction, help=received)
    given = parser.parse_args()
    if given.rate < 0 or given.concurrency < 1 or (given.rides is not None and given.rides < 1):
        parser.error("a rate is at least 0; rides and the concurrency are at least 1")
    return given


def main() -> int:
    """Return 1 if all `--rides` were answered and one of them was refused, else 0."""
    given = arguments()
    config = settings.load()
    service.configure(config)

    outcomes = Outcomes()
    with suppress(asyncio.CancelledError):  # by a signal before it began to post
        asyncio.run(simulate(config, given, outcomes))
    return int(outcomes.refused > 0 and outcomes.posted + outcomes.refused == given.rides)


if __name__ == "__main__":
    raise SystemExit(optional.run("the simulator", main))
