"""A client of the API: posts a ride until it is answered, and never makes two rides of one."""

import asyncio
import logging
import uuid
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus

import aiohttp

from rocket_rides import errors, waiting

logger = logging.getLogger(__name__)


@dataclass
class Outcomes:
    """How many rides ended in which way so far."""

    posted: int = 0
    retried: int = 0
    refused: int = 0

    def __str__(self) -> str:
        refused = f", {self.refused} refused" if self.refused else ""
        return f"{self.posted} rides posted, {self.retried} retried{refused}"


async def wait_for_api(api: aiohttp.ClientSession, url: str) -> None:
    """Return when the API at `url` can take rides. Logs once that it is waiting, and why."""
    logged = False
    for delay in waiting.delays():
        try:
            async with api.get("readyz") as answer:
                if answer.ok:
                    return
                reason = f"it answers {answer.status}"
        except (aiohttp.ClientError, TimeoutError):
            reason = "it does not answer"
        if not logged:
            logger.info("waiting for the API at %s (%s)", url, reason)
            logged = True
        await asyncio.sleep(delay)


async def post_ride(api: aiohttp.ClientSession, metres: Decimal, outcomes: Outcomes) -> None:
    """Post one ride until the API answers; the same key makes every repeat the same ride.

    A 5xx, a lost connection or a timeout is not an answer. Any other failure is a bug, in the API
    or in this client, that a retry would not fix: it is logged and counted as refused.
    """
    key = str(uuid.uuid4())
    for delay in waiting.delays():
        try:
            async with api.post(
                "rides", data={"distance": str(metres)}, headers={"Idempotency-Key": key}
            ) as answer:
                text = await answer.text(errors="replace")
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = errors.in_one_line(error)
        else:
            if answer.ok:
                outcomes.posted += 1
                return
            if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                outcomes.refused += 1
                line = " ".join(text[:200].split())
                logger.error("a ride of %s m got %s: %s", metres, answer.status, line)
                return
            reason = f"status {answer.status}"
        outcomes.retried += 1
        logger.debug("%s: retrying %s in %.2f s", reason, key, delay)
        await asyncio.sleep(delay)
