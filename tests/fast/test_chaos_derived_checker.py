"""What chaos' checker finds in the rollup and the receipts: each mistake made on purpose."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import cast

import pytest

from lab.chaos.checker import check
from lab.chaos.derived import FinalReceipt, FinalReceipts, FinalRollup, Minute
from lab.chaos.drifts import OUTCOME, Drift
from lab.chaos.evidence import Evidence
from lab.chaos.nights_evidence import NightsEvidence
from lab.chaos.receipts_checker import no_ride_with_an_outcome_is_sent_again
from tests.support.evidence import GONE, LATER, MEANWHILE, NOON, ONE, TWO, delivery, sound

THEN = NOON + timedelta(minutes=2)
UNWELCOME = Decimal("100.900")


def rollup(evidence: Evidence) -> FinalRollup:
    return cast(FinalRollup, evidence.rollup)


def receipts(evidence: Evidence) -> FinalReceipts:
    return cast(FinalReceipts, evidence.receipts)


def miscount_a_minute(evidence: Evidence) -> None:
    rollup(evidence).minutes[NOON] = Minute(2, ONE, 2)


def misadd_a_minute(evidence: Evidence) -> None:
    rollup(evidence).minutes[NOON] = Minute(1, Decimal("1.010"), 2)


def lose_a_minute(evidence: Evidence) -> None:
    del rollup(evidence).minutes[THEN]


def make_up_a_minute(evidence: Evidence) -> None:
    rollup(evidence).minutes[NOON + timedelta(minutes=1)] = Minute(1, GONE, 3)


def label_a_minute_too_low(evidence: Evidence) -> None:
    rollup(evidence).minutes[THEN] = Minute(1, TWO, 2)


def label_a_minute_too_high(evidence: Evidence) -> None:
    rollup(evidence).minutes[NOON] = Minute(1, ONE, 4)


def stop_the_rollup_early(evidence: Evidence) -> None:
    rollup(evidence).complete_to = 1


def run_the_rollup_ahead(evidence: Evidence) -> None:
    rollup(evidence).complete_to = 4


def set_a_minute_aside(evidence: Evidence) -> None:
    rollup(evidence).set_aside.append("the minute 12:00 was set aside: overflow")


def leave_a_minute_dirty(evidence: Evidence) -> None:
    rollup(evidence).dirty = 1


def decide_nothing(evidence: Evidence) -> None:
    receipts(evidence).outcomes[3] = FinalReceipt(None)


def forget_an_outcome(evidence: Evidence) -> None:
    del receipts(evidence).outcomes[3]


def make_up_an_outcome(evidence: Evidence) -> None:
    receipts(evidence).outcomes[2] = FinalReceipt("delivered")


def give_one_up(evidence: Evidence) -> None:
    receipts(evidence).outcomes[3] = FinalReceipt("dead")


def deliver_what_is_refused(evidence: Evidence) -> None:
    evidence.final.rides[3] = UNWELCOME


def stop_the_receipts_early(evidence: Evidence) -> None:
    receipts(evidence).complete_to = 1


def leave_one_pending(evidence: Evidence) -> None:
    receipts(evidence).pending.append("5-0")


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
    evidence.deliveries.append(delivery(1, ONE, 51, name="other"))


def send_a_ride_that_is_not_there(evidence: Evidence) -> None:
    evidence.deliveries.append(delivery(2, Decimal("5.045"), 50))


def send_a_lost_past_for_ever(evidence: Evidence) -> None:
    evidence.deliveries.append(delivery(3, GONE, MEANWHILE)._replace(at=200))


def send_a_lost_past_before_the_backup(evidence: Evidence) -> None:
    evidence.deliveries.append(delivery(3, GONE, MEANWHILE)._replace(at=99))


def restore_nothing(evidence: Evidence) -> None:
    evidence.restores.clear()


def send_again(evidence: Evidence) -> None:
    evidence.deliveries.append(delivery(1, ONE, 50)._replace(at=68))


def name_two_alike(evidence: Evidence) -> None:
    evidence.deliveries[3:] = [delivery(3, TWO, LATER, name=f"3 of {GONE}")]


def name_one_twice(evidence: Evidence) -> None:
    evidence.deliveries[4] = delivery(3, TWO, LATER, name="another")


@pytest.mark.parametrize(
    ("breakage", "expected"),
    [
        (miscount_a_minute, "the minute 12:00 says 2 rides of 1.009 m, not 1 rides of 1.009 m"),
        (misadd_a_minute, "the minute 12:00 says 1 rides of 1.010 m, not 1 rides of 1.009 m"),
        (lose_a_minute, "the minute 12:02 is missing; it has 1 rides, of 2.018 m"),
        (make_up_a_minute, "the minute 12:01 says 1 rides of 4.036 m, not 0 rides of 0.000 m"),
        (label_a_minute_too_low, "the minute 12:02 is labelled 2, but has ride 3"),
        (label_a_minute_too_high, "the minute 12:00 is labelled 4, which was never sent"),
        (stop_the_rollup_early, "the rollup is complete to ride 1, not 3"),
        (run_the_rollup_ahead, "the rollup is complete to ride 4, not 3"),
        (set_a_minute_aside, "the minute 12:00 was set aside: overflow"),
        (leave_a_minute_dirty, "1 minutes are left dirty"),
        (decide_nothing, "ride 3 has no outcome"),
        (forget_an_outcome, "ride 3 has no outcome"),
        (make_up_an_outcome, "there is a receipt of ride 2, which does not exist"),
        (give_one_up, "the receipt of ride 3 is dead, and was not meant to be"),
        (deliver_what_is_refused, "the receipt of ride 3 is called delivered, but is always"),
        (stop_the_receipts_early, "receipts are complete to ride 1, not 3"),
        (leave_one_pending, "1 entries are left pending: 5-0"),
        (send_nothing, "ride 3 is called delivered, but nobody has accepted its receipt"),
        (be_refused_alone, "ride 1 is called delivered, but nobody has accepted its receipt"),
        (be_answered_by_half, "ride 1 is called delivered, but nobody has accepted its receipt"),
        (sign_wrongly, "what is no receipt (WebhookVerificationError: No matching signature"),
        (send_another_distance, "ride 1 of 1.010 m at 2026-11-22 12:00:50+00:00, which does not"),
        (send_another_time, "ride 1 of 1.009 m at 2026-11-22 12:00:51+00:00, which does not"),
        (send_a_ride_that_is_not_there, "a receipt of ride 2 of 5.045 m at"),
        (send_a_lost_past_for_ever, "a receipt of ride 3 of 4.036 m at"),
        (send_a_lost_past_before_the_backup, "a receipt of ride 3 of 4.036 m at"),
        (restore_nothing, "a receipt of ride 3 of 4.036 m at"),
        (send_again, "the receipt of ride 1 was sent 16 s after its outcome"),
        (name_two_alike, "two receipts have the webhook-id 3 of 4.036"),
        (name_one_twice, "the receipt of ride 3 came under two webhook-ids"),
    ],
)
def test_the_checker_finds_in_minutes_and_receipts(
    breakage: Callable[[Evidence], None], expected: str
) -> None:
    evidence = sound()
    assert check(evidence) == []
    breakage(evidence)
    assert expected in "\n".join(check(evidence))


def test_a_ride_that_is_always_refused_is_dead_as_meant() -> None:
    evidence = sound()
    deliver_what_is_refused(evidence)
    receipts(evidence).outcomes[3] = FinalReceipt("dead")
    assert "of ride 3 is" not in "\n".join(check(evidence))


def test_what_a_test_has_not_run_is_not_judged() -> None:
    evidence = replace(sound(), rollup=None, receipts=None, deliveries=[])
    assert check(evidence) == []


# Of the sound run: ride 1 has its outcome at 52; a backup began at 100, and is restored at 110.
@pytest.mark.parametrize(
    ("taken_away", "sent", "is_wrong"),
    [
        pytest.param(None, 106, True, id="nobody took the outcome away"),
        pytest.param(104, 106, False, id="the restore undid that, and what was sent is right"),
        pytest.param(104, 103, True, id="it was sent before"),
        pytest.param(104, 130, True, id="it was sent after the restore, which brought it back"),
        pytest.param(90, 106, True, id="the backup lacks it, too: nothing explains it"),
    ],
)
def test_an_outcome_that_was_taken_away_and_came_back_with_a_restore_may_be_sent_between(
    taken_away: float | None, sent: float, is_wrong: bool
) -> None:
    evidence = sound()
    evidence.deliveries.append(delivery(1, ONE, 50)._replace(at=sent))
    if taken_away:
        drift = Drift("token", OUTCOME, "1", "delivered", taken_away, taken_away + 0.1)
        evidence.nights = NightsEvidence([], made=[drift])
    assert bool([*no_ride_with_an_outcome_is_sent_again(evidence)]) == is_wrong
