"""Judges each request to the receiver of receipts as a customer would.

It accepts only what is signed with its secret. By the distance, it refuses one ride in a hundred
for good: in every run, exactly the receipts of these rides must become dead letters.
"""

import json
import time
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import NamedTuple

from standardwebhooks import Webhook, WebhookVerificationError

PATH, TYPE = "/receipts", "ride.receipt"
UNWELCOME_EVERY = Decimal("100.900")  # metres: each hundredth of the distances that are asked for

TAKEN, REFUSED, FORGED, BUSY = 204, 410, 400, 503
NO_RECEIPT = (WebhookVerificationError, ValueError, LookupError, TypeError, InvalidOperation)


class Mood(Enum):
    """What the receiver does with a request."""

    WELL = "takes receipts"
    BUSY = "answers 503"
    HANGING = "never answers"
    CUTTING = "hangs up in the middle of its answer"
    LATE = "takes receipts, and answers after the time-out"
    AWAY = "does not listen"


FAILURES = (Mood.BUSY, Mood.HANGING, Mood.CUTTING, Mood.LATE, Mood.AWAY)


class Delivery(NamedTuple):
    """One request. Fields of its body are None where it has a `flaw`, and so is no receipt.

    `taken` is the ride's time, `distance` is in metres, `at` is on the monotonic clock. `status` is
    the answer's, or None where the answer is never complete.
    """

    webhook_id: str
    ride: int | None
    distance: Decimal | None
    taken: datetime | None
    at: float
    status: int | None
    flaw: str = ""


def is_unwelcome(distance: Decimal) -> bool:
    """Whether the receiver refuses the receipt of a ride of this distance (metres) for good."""
    return not distance % UNWELCOME_EVERY


def judge(secret: str, mood: Mood, path: str, headers: dict[str, str], body: bytes) -> Delivery:
    """Read a request that has just come, and decide its answer; header names are in lower case."""
    webhook_id, at = headers.get("webhook-id", ""), time.monotonic()
    try:
        Webhook(secret).verify(body, headers, json_parse=False)
        said = json.loads(body, parse_float=Decimal)
        ride, distance = int(said["data"]["ride_id"]), Decimal(said["data"]["distance"])
        taken = datetime.fromisoformat(said["timestamp"])
        if (path, said["type"]) != (PATH, TYPE):
            raise ValueError(f"{said['type']!r} to {path}")
    except NO_RECEIPT as error:
        flaw = f"{type(error).__name__}: {error}"
        return Delivery(webhook_id, None, None, None, at, FORGED, flaw)
    status = BUSY if mood is Mood.BUSY else None
    if mood in (Mood.WELL, Mood.LATE):
        status = REFUSED if is_unwelcome(distance) else TAKEN
    return Delivery(webhook_id, ride, distance, taken, at, status)
