"""What a receipts' worker has in memory: patience with its receiver; and what it says."""

import random
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import pytest

from consumers.receipts import dead
from consumers.receipts.breaker import LONGEST_PAUSE, TRIP, Breaker
from consumers.receipts.queue import LONGEST_DELAY, Attempt, Ended
from consumers.receipts.receipt import Receipt
from consumers.receipts.report import Report
from consumers.receipts.round import Round
from consumers.receipts.verdict import LONGEST_RETRY_AFTER, Kind, Verdict
from rocket_rides.settings import Settings

FAILED, DELIVERED = Verdict(Kind.RETRY, "500"), Verdict(Kind.DELIVERED, "204")
RECEIPT = Receipt(1, Decimal(1), datetime(2026, 11, 22, tzinfo=UTC), "")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def ended(verdict: Verdict, number: int) -> Ended:
    return Ended(Attempt(RECEIPT, uuid4(), number, 0), verdict)


def test_a_receiver_that_is_down_for_ten_minutes_is_asked_a_few_times_a_minute() -> None:
    random.seed(1)
    clock = Clock()
    breaker = Breaker(clock)
    asked = 0
    while clock.now < 1600:
        for _ in range(breaker.allows(0, 64)):
            asked += 1
            breaker.note(FAILED)
        clock.now += 0.05
    assert asked < 64 + 10 * 60 / (LONGEST_PAUSE / 2) + 10
    assert asked > 64 + 10 * 60 / LONGEST_PAUSE / 2
    clock.now += LONGEST_PAUSE
    assert breaker.allows(0, 64) == 1
    assert breaker.allows(1, 63) == 0
    breaker.note(DELIVERED)
    assert breaker.allows(0, 64) == 64


def test_a_few_failures_among_many_pause_nothing() -> None:
    breaker = Breaker(Clock())
    for _ in range(10):
        for _ in range(TRIP - 1):
            breaker.note(FAILED)
        assert breaker.allows(0, 64) == 64
        breaker.note(Verdict(Kind.REFUSED, "422"))


def test_whoever_asks_all_to_wait_is_left_alone_for_as_long() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(TRIP):
        breaker.note(Verdict(Kind.RETRY, "429", retry_after=60))
    clock.now += 59
    assert breaker.allows(0, 64) == 0
    clock.now += 2
    assert breaker.allows(0, 64) == 1


@pytest.mark.parametrize("seed", range(5))
def test_what_is_only_delayed_for_minutes_is_not_dead(seed: int) -> None:
    """The attempts that there may be by default take at least ten minutes."""
    random.seed(seed)
    attempts = Settings().receipt_attempts
    delays = [ended(FAILED, number).delay for number in range(1, attempts)]
    assert sum(delays) > 600
    assert max(delays) <= LONGEST_DELAY
    assert 0.5 <= delays[0] <= 1


def test_what_the_receiver_asks_for_is_waited_for() -> None:
    asked = Verdict(Kind.RETRY, "503", retry_after=LONGEST_RETRY_AFTER)
    assert ended(asked, 1).delay == LONGEST_RETRY_AFTER


@pytest.mark.parametrize(
    "words", [[], ["replay"], ["replay", "1", "--all"], ["show", "x"], ["drop"], ["drop", "0"],
              ["show", "٣"], ["replay", "9223372036854775808"], ["show", "-1"]]
)  # fmt: skip
def test_the_command_for_dead_letters_refuses_what_it_does_not_understand(
    words: list[str],
) -> None:
    with pytest.raises(SystemExit) as exit_status:
        dead.parse(words)
    assert exit_status.value.code == 2


def test_a_line_tells_what_happened_and_nothing_that_did_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "consumer")
    report = Report("one", Breaker())
    report(Round(delivered=[4, 3]), last=True)
    report(Round(again={1: 1.0}), last=True)
    report(Round(delivered=[5], again={1: 1.0, 2: 1.0}), last=True)
    report(Round(), last=True)
    assert caplog.messages == [
        "2 receipts delivered",
        "1 receipt to be sent again later",
        "1 receipt delivered, 2 receipts to be sent again later",
    ]
