"""What the receiver of the receipts was sent: each request, judged as a customer would judge it.

It takes only what is signed with its secret. It refuses one ride in a hundred for good, by the
distance, so that every run has rides whose receipt must end as a dead letter, and no others may.
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
    LATE = "takes receipts, and says so when nobody listens any more"
    AWAY = "does not listen"


FAILURES = (Mood.BUSY, Mood.HANGING, Mood.CUTTING, Mood.LATE, Mood.AWAY)


class Delivery(NamedTuple):
    """One request. What the body says is None where there is a `flaw`: then it is no receipt.

    `taken` is the ride's time, `distance` is in metres, `at` is on the monotonic clock. `status` is
    the answer, None where it is never whole.
    """

    webhook_id: str
    ride: int | None
    distance: Decimal | None
    taken: datetime | None
    at: float
    status: int | None
    flaw: str = ""

    @property
    def accepted(self) -> bool:
        return self.status == TAKEN


def is_unwelcome(distance: Decimal) -> bool:
    """Whether the receiver never takes the receipt of a ride of this distance (metres)."""
    return not distance % UNWELCOME_EVERY


def judge(secret: str, mood: Mood, path: str, headers: dict[str, str], body: bytes) -> Delivery:
    """What a request is that comes now, and how it is to be answered; headers in lower case."""
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
