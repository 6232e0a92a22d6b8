"""The customer: expects a receipt for each ride, and is not always easy to deliver to.

It refuses one receipt in ten for a moment, is slow now and then, and never accepts one ride in two
hundred, so that the demo has dead letters. It says when a receipt is late, twice, forged, wrong or
missing. It remembers only the newest rides and receipts, so a long run stays small.

Whoever wants to see receipts wait puts it in a bad mood (`make break ARGS=fail-receiver`): for some
seconds it refuses whatever comes, and says when to come again.
"""

import json
import logging
import math
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from time import monotonic
from typing import Any, NamedTuple

from standardwebhooks import Webhook, WebhookVerificationError

from demo.simulator.mood import BAD_MOOD, IN_A_BAD_MOOD

logger = logging.getLogger(__name__)

PUT_OFF = 0.1  # share of receipts that are refused, each time for a second
SLOW = 0.02  # share of receipts that are answered slowly
SLOWNESS = 2.0  # seconds
NEVER = 200  # a ride whose id is a multiple of this one is never accepted
# Seconds from the API's answer to the receipt. What was put off several times is not late yet.
LATE, MISSING = 15.0, 60.0
MOST = 20_000  # rides and receipts remembered, of each kind
MOST_LINES = 5  # of each kind, between two reports


class Reply(NamedTuple):
    """What the sender of a receipt is answered, `delay` seconds later."""

    status: int
    text: str = ""
    delay: float = 0
    headers: tuple[tuple[str, str], ...] = ()


class Ride(NamedTuple):
    """A ride that was posted: its distance, and when the API answered, on the customer's clock."""

    metres: Decimal
    answered: float


class Customer:
    """Judges each receipt; for one thread. `clock` counts seconds and never goes back."""

    def __init__(
        self, secret: str, dice: random.Random, clock: Callable[[], float] = monotonic
    ) -> None:
        self._webhook = Webhook(secret)
        self._dice = dice
        self._clock = clock
        self.counts: Counter[str] = Counter()
        self._lines: Counter[str] = Counter()
        self._expected: dict[int, Ride] = {}
        self._missing: dict[int, Ride] = {}
        self._accepted: dict[str, None] = {}  # by webhook-id
        self._unknown: dict[int, Decimal] = {}  # accepted before we knew of the ride
        self._well_at = -math.inf  # when the last bad mood is over

    @property
    def waits(self) -> bool:
        """Whether a receipt is due that is not missing yet."""
        return bool(self._expected)

    @property
    def is_content(self) -> bool:
        """Whether every receipt that was due has come, and was what it had to be."""
        return not (+self.counts).keys() & {"forged", "wrong", "missing"}

    def posted(self, ride_id: int, metres: Decimal) -> None:
        """The API took a ride, so its receipt is due."""
        if ride_id % NEVER == 0 or self._unknown.pop(ride_id, None) == metres:
            return
        _remember(self._expected, ride_id, Ride(metres, self._clock()))

    def begin_bad_mood(self) -> None:
        """Refuse everything for BAD_MOOD seconds from now on."""
        self._well_at = self._clock() + BAD_MOOD
        logger.warning("refusing all receipts for %g s", BAD_MOOD)

    def receives(self, headers: dict[str, str], body: bytes) -> Reply:
        """Answer a request. The names of `headers` are in lower case."""
        if (left := self._well_at - self._clock()) > 0:
            self.counts["put off"] += 1
            wait = ("Retry-After", str(math.ceil(left)))
            return Reply(503, IN_A_BAD_MOOD, headers=(wait,))
        try:
            self._webhook.verify(body, headers, json_parse=False)
        # The library takes the headers apart without looking first.
        except (WebhookVerificationError, ValueError) as error:
            return self._refuse(401, "forged", f"a receipt is forged: {error}")
        try:
            ride_id, metres = _read(body)
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:
            return self._refuse(400, "wrong", f"a receipt says nothing of a ride: {error!r}")
        webhook_id = headers["webhook-id"]
        if webhook_id in self._accepted:
            self._say(logging.INFO, "twice", f"the receipt of ride {ride_id} came again")
            return Reply(204)
        ride = self._expected.get(ride_id) or self._missing.get(ride_id)
        if ride and ride.metres != metres:
            said = f"the receipt of ride {ride_id} says {metres} m, not {ride.metres} m"
            return self._refuse(400, "wrong", said)
        if ride_id % NEVER == 0:
            self.counts["never accepted"] += 1
            return Reply(422, f"this customer never accepts ride {ride_id}")
        if self._dice.random() < PUT_OFF:
            self.counts["put off"] += 1
            return Reply(503, "not now", headers=(("Retry-After", "1"),))
        _remember(self._accepted, webhook_id, None)
        self._accept(ride_id, metres)
        return Reply(204, delay=SLOWNESS if self._dice.random() < SLOW else 0)

    def _accept(self, ride_id: int, metres: Decimal) -> None:
        self.counts["accepted"] += 1
        missed = self._missing.pop(ride_id, None)
        ride = self._expected.pop(ride_id, missed)
        if ride is None:
            _remember(self._unknown, ride_id, metres)
            return
        if missed:
            self.counts["missing"] -= 1
        waited = self._clock() - ride.answered
        if waited > LATE:
            said = f"the receipt of ride {ride_id} came {waited:.1f} s after the ride"
            self._say(logging.INFO, "late", said)

    def _refuse(self, status: int, kind: str, text: str) -> Reply:
        self._say(logging.WARNING, kind, text)
        return Reply(status, text)

    def _say(self, level: int, kind: str, text: str) -> None:
        self.counts[kind] += 1
        self._lines[kind] += 1
        if self._lines[kind] <= MOST_LINES:
            logger.log(level, "%s", text)

    def look(self) -> None:
        """Say which receipts are missing by now."""
        overdue = []
        for ride_id, ride in self._expected.items():  # the oldest first
            if self._clock() - ride.answered <= MISSING:
                break
            overdue.append(ride_id)
        for ride_id in overdue:
            _remember(self._missing, ride_id, self._expected.pop(ride_id))
        if overdue:
            self.counts["missing"] += len(overdue)
            rides, are = ("ride", "has") if len(overdue) == 1 else ("rides", "have")
            logger.warning(
                "%d %s %s had no receipt for %.0f s, ride %d the first",
                *(len(overdue), rides, are, MISSING, overdue[0]),
            )

    def report(self) -> str:
        """How many receipts there were, and what became of them; begins the next interval."""
        self._lines.clear()
        told = ["accepted", *sorted(kind for kind in +self.counts if kind != "accepted")]
        return "receipts: " + ", ".join(f"{self.counts[kind]} {kind}" for kind in told)


def _read(body: bytes) -> tuple[int, Decimal]:
    """The ride and its distance in metres."""
    message: dict[str, Any] = json.loads(body, parse_float=Decimal)
    if message["type"] != "ride.receipt":
        raise ValueError(message["type"])
    data = message["data"]
    return int(data["ride_id"]), Decimal(data["distance"])


def _remember(known: dict[Any, Any], key: object, value: object) -> None:
    """Add to `known`, and forget the oldest where there are too many."""
    known[key] = value
    if len(known) > MOST:
        del known[next(iter(known))]
