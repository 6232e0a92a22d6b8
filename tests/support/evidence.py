"""The evidence of a chaos run without findings, made up."""

import signal
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from lab.chaos.deliveries import Delivery
from lab.chaos.evidence import Evidence, FinalState, Met
from lab.chaos.journal import Answer, Ask
from lab.chaos.restore import Restore
from lab.chaos.service import Exit

ONE, TWO, GONE = Decimal("1.009"), Decimal("2.018"), Decimal("4.036")
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
MEANWHILE, LATER = 105.0, 120.0  # after the backup, and after the restore


def answered(number: int, distance: Decimal, key: str, at: float) -> Ask:
    answer = Answer(number, distance, at, at + 0.1)
    return Ask(distance, key, whole=True, asked_at=at, answers=[answer])


def taken(at: float) -> datetime:
    """The time of a ride that was taken at this moment of the monotonic clock."""
    return NOON + timedelta(seconds=at)


def delivery(
    ride: int, distance: Decimal, at: float, status: int = 204, name: str = ""
) -> Delivery:
    """The delivery of the receipt of a ride that was taken at `at`, a second later."""
    webhook_id = name or f"{ride} of {distance}"
    return Delivery(webhook_id, ride, distance, taken(at), at + 1, status)


def sound() -> Evidence:
    """Three rides are answered, and a third request was never completed.

    Another ride is answered after a backup, and lost by the restore. One receipt is refused at
    first, another delivered twice, and one is of the lost ride.
    """
    return Evidence(
        asks=[
            answered(1, ONE, "a", 50),
            answered(3, TWO, "b", LATER),
            Ask(Decimal("3.027"), "c"),
            answered(3, GONE, "d", MEANWHILE),
        ],
        final=FinalState(
            rides={1: ONE, 3: TWO},
            times=defaultdict(lambda: NOON, {1: taken(50), 3: taken(LATER)}),
            keys={"a": 1, "b": 3},
            outcomes={1: "delivered", 3: "delivered"},
            met=Met(0, 0, 0, 3),
        ),
        exits=[Exit("streamer0", -9, signal.SIGKILL, 10), Exit("api", 0, signal.SIGTERM, 10)],
        restores=[Restore(began=100, killed=110)],
        settled_at=LATER + 10,
        deliveries=[
            delivery(1, ONE, 50, status=503),
            delivery(1, ONE, 50),
            delivery(3, GONE, MEANWHILE),
            delivery(3, TWO, LATER),
            delivery(3, TWO, LATER),
        ],
    )


def keep_another(evidence: Evidence, at: float) -> None:
    evidence.asks.append(answered(2, Decimal("5.045"), "e", at))
    evidence.final.rides[2] = Decimal("5.045")
    evidence.final.keys["e"] = 2
