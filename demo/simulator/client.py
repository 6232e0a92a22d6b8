"""A client of the API: posts a ride until it is answered, and never makes two rides of one."""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus

import aiohttp

from unified_log import errors, waiting

logger = logging.getLogger(__name__)


@dataclass
class Outcomes:
    """How many rides were posted, refused and rated so far, and how many attempts were repeated."""

    posted: int = 0
    retried: int = 0
    refused: int = 0
    rated: int = 0

    def __str__(self) -> str:
        refused = f", {self.refused} refused" if self.refused else ""
        rated = f", {self.rated} rated" if self.rated else ""
        return f"{self.posted} rides posted{rated}, {self.retried} retried{refused}"


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


async def post_ride(api: aiohttp.ClientSession, metres: Decimal, outcomes: Outcomes) -> str:
    """Post one ride until the API answers; returns its path, or nothing where it was refused.

    The same key makes every repeat the same ride.
    """
    key = {"Idempotency-Key": str(uuid.uuid4())}
    what = f"a ride of {metres} m"
    location = await _post(api, "rides", {"distance": str(metres)}, key, what, outcomes)
    if location is None:
        outcomes.refused += 1
        return ""
    outcomes.posted += 1
    return location.removeprefix("/")


async def rate_ride(api: aiohttp.ClientSession, ride: str, stars: int, outcomes: Outcomes) -> None:
    """Rate the ride at a path until the API answers. A ride is rated once, so this needs no key."""
    what = f"a rating of {ride}"
    if await _post(api, f"{ride}/rating", {"stars": str(stars)}, {}, what, outcomes) is not None:
        outcomes.rated += 1


async def _post(
    api: aiohttp.ClientSession,
    path: str,
    data: Mapping[str, str],
    headers: Mapping[str, str],
    what: str,
    outcomes: Outcomes,
) -> str | None:
    """Post until there is an answer; returns its Location, or None where it was refused.

    A 5xx, a lost connection or a timeout is not an answer. Any other failure is a bug, in the API
    or in this client, that a retry would not fix: it is logged.
    """
    for delay in waiting.delays():
        try:
            async with api.post(path, data=data, headers=headers) as answer:
                text = await answer.text(errors="replace")
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = errors.in_one_line(error)
        else:
            if answer.ok:
                return answer.headers.get("Location", "")
            if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                line = " ".join(text[:200].split())
                logger.error("%s got %s: %s", what, answer.status, line)
                return None
            reason = f"status {answer.status}"
        outcomes.retried += 1
        logger.debug("%s: retrying %s in %.2f s", reason, what, delay)
        await asyncio.sleep(delay)
    return None
