"""One client of the API: a ride is posted until it is answered, and makes one ride at most."""

import asyncio
import logging
import uuid
from dataclasses import dataclass
from decimal import Decimal

import httpx

from rocket_rides import errors, waiting

logger = logging.getLogger(__name__)


@dataclass
class Outcomes:
    """What has become of the rides so far."""

    posted: int = 0
    retried: int = 0
    refused: int = 0

    def __str__(self) -> str:
        refused = f", {self.refused} refused" if self.refused else ""
        return f"{self.posted} rides posted, {self.retried} retried{refused}"


async def wait_for_api(api: httpx.AsyncClient) -> None:
    """Return when the API can take rides. Says once that it waits, and why."""
    said = False
    for delay in waiting.delays():
        try:
            answer = await api.get("/readyz")
        except httpx.TransportError as error:
            reason = errors.in_one_line(error)
        else:
            if answer.is_success:
                return
            reason = f"it answers {answer.status_code}"
        if not said:
            logger.info("waiting for the API at %s (%s)", api.base_url, reason)
            said = True
        await asyncio.sleep(delay)


async def post_ride(api: httpx.AsyncClient, metres: Decimal, outcomes: Outcomes) -> None:
    """Post one ride until the API has answered; the same key makes every repeat the same ride.

    A 5xx, a lost connection and a timeout are no answer. Any other failure is a bug of the API's
    or of this client's, which repeating would not mend: reported and counted as refused.
    """
    key = str(uuid.uuid4())  # never seeded: a second run with the same seed must post new rides
    for delay in waiting.delays():
        try:
            answer = await api.post(
                "/rides", data={"distance": str(metres)}, headers={"Idempotency-Key": key}
            )
        except httpx.TransportError as error:
            reason = errors.in_one_line(error)
        else:
            if answer.is_success:
                outcomes.posted += 1
                return
            if not answer.is_server_error:
                outcomes.refused += 1
                said = " ".join(answer.text[:200].split())
                logger.error("a ride of %s m got %s: %s", metres, answer.status_code, said)
                return
            reason = f"status {answer.status_code}"
        outcomes.retried += 1
        logger.debug("%s: posting %s again in %.2f s", reason, key, delay)
        await asyncio.sleep(delay)
