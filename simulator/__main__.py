"""`python -m simulator`: posts rides of random distance at random moments, as any client would.

Each ride has its own Idempotency-Key and is posted with it until the API answers, so that a lost
answer never makes two rides of one. Without `--rides` only a signal ends it.

After a crash or a signal the client does not know of up to `--concurrency` rides whether they were
taken. The API knows: each is there once, whole, or not at all.
"""

import argparse
import asyncio
import itertools
import logging
import math
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from time import monotonic
from typing import Never

import httpx
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from rocket_rides import fleet, process, settings
from simulator.client import Outcomes, post_ride, wait_for_api

logger = logging.getLogger("simulator")

SHORTEST, LONGEST = 5_000, 1_000_000  # millimetres
TIMEOUT = 10.0
REPORT_EVERY = 10.0
# Seconds that it may fall behind schedule: more would turn an outage of the API into a flood.
CATCH_UP = 1.0

Rides = Iterator[tuple[float, Decimal]]


def schedule(dice: random.Random, rate: float, rides: int | None) -> Rides:
    """Yield when each ride is due, on the monotonic clock, and its distance in metres.

    A Poisson process of `rate` rides a second, however many clients take rides from it; with a
    rate of 0 every ride is due at once. Yields `rides` of them, or never ends.
    """
    due = monotonic()
    for _ in itertools.repeat(None) if rides is None else range(rides):
        if rate:
            due = max(due, monotonic() - CATCH_UP) + dice.expovariate(rate)
        yield due, Decimal(dice.randint(SHORTEST, LONGEST)).scaleb(-3)


async def simulate(
    url: str, rides: Rides, concurrency: int, outcomes: Outcomes, bar: "tqdm[Never]"
) -> None:
    """Post `rides`, at most `concurrency` at a time. SIGTERM and SIGINT cancel it."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 (a coroutine runs in a task)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)

    async def post() -> None:
        for due, metres in rides:
            await asyncio.sleep(due - monotonic())
            await post_ride(api, metres, outcomes)
            bar.update()

    async def report() -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY)
            logger.info("%s", outcomes)

    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    # trust_env=False: the API is on this machine or where API_URL says, never behind a proxy.
    async with httpx.AsyncClient(
        base_url=url, timeout=TIMEOUT, limits=limits, trust_env=False
    ) as api:
        await wait_for_api(api)
        reporter = asyncio.create_task(report())
        async with asyncio.TaskGroup() as posters:
            for _ in range(concurrency):
                posters.create_task(post())
        reporter.cancel()


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def per_second(text: str) -> float:
    rate = float(text)
    if not 0 <= rate < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a rate in rides a second")
    return rate


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    add = parser.add_argument
    add("--rides", type=at_least_one, metavar="N", help="stop after N rides (default: never)")
    add("--rate", type=per_second, default=2.0, help="rides a second; 0: no limit (default: 2)")
    add("--concurrency", type=at_least_one, default=1, metavar="C", help="rides at once")
    add("--seed", type=int, help="seed for the same distances and pauses in every run")
    return parser.parse_args()


def main() -> int:
    """Return 1 if all `--rides` were answered and some were refused, else 0."""
    given = arguments()
    config = settings.load()
    fleet.refuse_to_join(config.data_dir)
    process.log_to_stdout(config.log_level)
    fleet.end_with_honcho(process.terminate)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request

    outcomes = Outcomes()
    rides = schedule(random.Random(given.seed), given.rate, given.rides)
    # disable=None is tqdm's "only on a terminal".
    disable = None if given.rides else True
    with (
        tqdm(total=given.rides, unit="ride", disable=disable) as bar,
        logging_redirect_tqdm(),
        suppress(asyncio.CancelledError),  # how a signal ends it
    ):
        asyncio.run(simulate(config.rides_url, rides, given.concurrency, outcomes, bar))
    logger.info("%s", outcomes)
    return int(outcomes.refused > 0 and outcomes.posted + outcomes.refused == given.rides)


if __name__ == "__main__":
    raise SystemExit(main())
