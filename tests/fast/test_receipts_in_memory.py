"""What a receipts' worker has in memory: patience with its receiver; and what it says."""

import random

import pytest

from consumers.receipts import dead
from consumers.receipts.breaker import LONGEST_IF_DECLINED, LONGEST_PAUSE, TRIP, Breaker
from consumers.receipts.queue import Outcomes
from consumers.receipts.verdict import Kind, Verdict, judge
from unified_log.tracing import Trace

TRACE = Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
FAILED, DELIVERED = Verdict(Kind.RETRY, "500"), Verdict(Kind.DELIVERED, "204")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def asked_for_ten_minutes(breaker: Breaker, clock: Clock, verdict: Verdict) -> int:
    """How often a receiver is asked to which every attempt ends so."""
    random.seed(1)
    asked, end = 0, clock.now + 600
    while clock.now < end:
        for _ in range(breaker.limit):
            asked += 1
            breaker.note(verdict)
        clock.now += 0.05
    return asked


def test_a_receiver_that_is_down_for_ten_minutes_is_asked_a_few_times_a_minute() -> None:
    clock = Clock()
    breaker = Breaker(64, clock)
    asked = asked_for_ten_minutes(breaker, clock, FAILED)
    assert asked < 64 + 10 * 60 / (LONGEST_PAUSE / 2) + 10
    assert asked > 64 + 10 * 60 / LONGEST_PAUSE / 2
    clock.now += LONGEST_PAUSE
    assert breaker.limit == 1
    breaker.note(DELIVERED)
    assert breaker.limit == 64


def test_whoever_asks_all_to_wait_is_left_alone_for_as_long() -> None:
    clock = Clock()
    breaker = Breaker(64, clock)
    for _ in range(TRIP):
        breaker.note(Verdict(Kind.RETRY, "429", retry_after=60))
    clock.now += 59
    assert breaker.limit == 0
    clock.now += 2
    assert breaker.limit == 1


def test_a_receiver_that_declines_everything_is_asked_every_two_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is there, and perhaps only the next receipts are what it never takes."""
    clock = Clock()
    asked = asked_for_ten_minutes(Breaker(64, clock), clock, judge(404, b"no such page"))
    assert 64 + 600 / LONGEST_IF_DECLINED - 10 < asked < 64 + 600 / (LONGEST_IF_DECLINED / 2) + 10
    line = "the receiver takes no receipts: status 404: no such page; trying again until it works"
    assert set(caplog.messages) == {line}


def test_the_command_for_malformed_entries_refuses_what_it_does_not_understand() -> None:
    for words in ("", "replay", "replay 1 --all", "drop", "drop --all", "drop x", "list 1"):
        with pytest.raises(SystemExit) as exit_status:
            dead.parse(words.split())
        assert exit_status.value.code == 2, words


def test_a_line_tells_what_happened_and_nothing_that_did_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "consumer")
    for outcomes in (
        Outcomes(delivered=[4, 3]),
        Outcomes(again=[1]),
        Outcomes(delivered=[5], again=[1, 2], dead={6: "410", 7: "422"}, traces={6: TRACE}),
    ):
        for _ in range(2):
            outcomes.tell(last=True)
    assert caplog.messages == [
        "receipts: 2 delivered",
        "receipts: 1 to be sent again later",
        "receipts: 1 delivered, 2 to be sent again later",
        "receipts: 2 given up, first that of ride 6: 410",
    ]
    given_up = caplog.records[-1].__dict__
    assert (given_up["ride_id"], given_up["trace_id"]) == (6, TRACE.id)
