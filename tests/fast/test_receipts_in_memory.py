"""What a receipts' worker has in memory: patience with its receiver; and what it says."""

import random

import pytest

from consumers.receipts import dead
from consumers.receipts.breaker import LONGEST_PAUSE, TRIP, Breaker
from consumers.receipts.report import Report
from consumers.receipts.round import Round
from consumers.receipts.verdict import Kind, Verdict

FAILED, DELIVERED = Verdict(Kind.RETRY, "500"), Verdict(Kind.DELIVERED, "204")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


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


def test_the_command_for_dead_letters_refuses_what_it_does_not_understand() -> None:
    refused = ("", "replay", "replay 1 --all", "drop", "drop 0", "drop x", "drop -1", "drop ٣")
    for words in (*refused, f"replay {2**63}"):
        with pytest.raises(SystemExit) as exit_status:
            dead.parse(words.split())
        assert exit_status.value.code == 2, words


def test_a_line_tells_what_happened_and_nothing_that_did_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "consumer")
    report = Report("one", Breaker())
    report(Round(delivered=[4, 3]), last=True)
    report(Round(again={1: 1.0}), last=True)
    report(Round(delivered=[5], again={1: 1.0, 2: 1.0}, dead={6: "410", 7: "422"}), last=True)
    report(Round(), last=True)
    assert caplog.messages == [
        "2 receipts delivered",
        "1 receipt to be sent again later",
        "1 receipt delivered, 2 receipts to be sent again later",
        "2 receipts given up, the first that of ride 6: 410",
    ]
