"""A ride's receipt: what its receiver is told, in the same bytes at every attempt."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

from unified_log.tracing import Trace

TYPE = "ride.receipt"


class Receipt(NamedTuple):
    """What `rides` says of a ride. `distance` is in metres, `created_at` has a time zone.

    `webhook_id` tells a repetition: it is the same at every attempt, whoever makes it. The
    `trace` is the one that the ride came in.
    """

    ride_id: int
    distance: Decimal
    created_at: datetime
    webhook_id: str
    trace: Trace | None = None

    def body(self) -> bytes:
        """The JSON that is signed and sent.

        `timestamp` is when the event occurred, as Standard Webhooks has it, so when the ride was
        taken. The distance is a JSON number with all its digits, never a binary float.
        """
        moment = self.created_at.astimezone(UTC).replace(tzinfo=None)
        taken = f"{moment.isoformat(timespec='microseconds')}Z"
        return (
            f'{{"type":"{TYPE}","timestamp":"{taken}","data":{{"ride_id":{self.ride_id},'
            f'"distance":{self.distance:f},"created_at":"{taken}"}}}}'
        ).encode()
