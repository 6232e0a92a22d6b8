"""What the judge of the books finds in the receiver's journal: each mistake made on purpose."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from lab.chaos.books.judge import check
from lab.chaos.evidence import Evidence
from tests.support.evidence import GONE, LATER, MEANWHILE, ONE, TWO, delivery, sound

LONG_AFTER = LATER + 9  # and before all have their outcomes


def send_nothing(evidence: Evidence) -> None:
    evidence.deliveries.clear()


def be_refused_alone(evidence: Evidence) -> None:
    del evidence.deliveries[1]


def be_answered_by_half(evidence: Evidence) -> None:
    evidence.deliveries[1] = evidence.deliveries[1]._replace(status=None)


def sign_wrongly(evidence: Evidence) -> None:
    flaw = "WebhookVerificationError: No matching signature found"
    evidence.deliveries.append(
        delivery(1, ONE, 50)._replace(ride=None, distance=None, taken=None, flaw=flaw)
    )


def send_another_distance(evidence: Evidence) -> None:
    evidence.deliveries.append(delivery(1, Decimal("1.010"), 50))


def send_another_time(evidence: Evidence) -> None:
    """A restore would explain that: the ride may have had this time before."""
    evidence.restores.clear()
    evidence.deliveries.append(delivery(1, ONE, 51, name="other"))


def send_a_ride_that_is_not_there(evidence: Evidence) -> None:
    evidence.deliveries.append(delivery(2, Decimal("5.045"), 50))


def send_another_rides_distance_long_after(evidence: Evidence) -> None:
    """The restore explains what was sent by then, and nothing of this."""
    evidence.deliveries.append(delivery(3, ONE, LATER)._replace(at=LONG_AFTER))


def send_a_ride_that_never_was_long_after(evidence: Evidence) -> None:
    evidence.deliveries.append(delivery(2, GONE, MEANWHILE)._replace(at=LONG_AFTER))


def restore_nothing(evidence: Evidence) -> None:
    evidence.restores.clear()


def send_again_in_the_end(evidence: Evidence) -> None:
    evidence.deliveries.append(delivery(1, ONE, 50)._replace(at=LATER + 11))


def name_two_alike(evidence: Evidence) -> None:
    evidence.deliveries[3:] = [delivery(3, TWO, LATER, name=f"3 of {GONE}")]


def name_one_twice(evidence: Evidence) -> None:
    evidence.deliveries[4] = delivery(3, TWO, LATER, name="another")


@pytest.mark.parametrize(
    ("breakage", "expected"),
    [
        (send_nothing, "ride 3 is called delivered, but nobody has accepted its receipt"),
        (be_refused_alone, "ride 1 is called delivered, but nobody has accepted its receipt"),
        (be_answered_by_half, "ride 1 is called delivered, but nobody has accepted its receipt"),
        (sign_wrongly, "what is no receipt (WebhookVerificationError: No matching signature"),
        (send_another_distance, "ride 1 of 1.010 m at 2026-11-22 12:00:50+00:00, which does not"),
        (send_another_time, "ride 1 of 1.009 m at 2026-11-22 12:00:51+00:00, which does not"),
        (send_a_ride_that_is_not_there, "a receipt of ride 2 of 5.045 m at"),
        (send_another_rides_distance_long_after, "a receipt of ride 3 of 1.009 m at"),
        (send_a_ride_that_never_was_long_after, "a receipt of ride 2 of 4.036 m at"),
        (restore_nothing, "a receipt of ride 3 of 4.036 m at"),
        (send_again_in_the_end, "the receipt of ride 1 was sent when nothing was left to send"),
        (name_two_alike, "two receipts have the webhook-id 3 of 4.036"),
        (name_one_twice, "the receipt of ride 3 came under two webhook-ids"),
    ],
)
def test_the_judge_finds_in_deliveries(breakage: Callable[[Evidence], None], expected: str) -> None:
    evidence = sound()
    assert check(evidence) == []
    breakage(evidence)
    assert expected in "\n".join(check(evidence))
