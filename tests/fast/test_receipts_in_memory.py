"""What a receipts' worker has in memory: bounded, in order, and patient with its receiver."""

import random

import pytest

from consumers.receipts import dead, hand
from consumers.receipts.breaker import LONGEST_PAUSE, TRIP, Breaker
from consumers.receipts.hand import Hand
from consumers.receipts.outcomes import LONGEST_DELAY, Ended
from consumers.receipts.receipt import Receipt
from consumers.receipts.report import Report
from consumers.receipts.round import Round
from consumers.receipts.verdict import LONGEST_RETRY_AFTER, Kind, Verdict
from rocket_rides.settings import Settings

FAILED, DELIVERED = Verdict(Kind.RETRY, "500"), Verdict(Kind.DELIVERED, "204")
RECEIPT = Receipt(1, None, None, "")  # type: ignore[arg-type]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def rides(hand: Hand, most: int, **options: bool) -> list[int]:
    return [errand.ride_id for errand in hand.next(most, **options)]


def test_what_is_due_comes_before_what_is_new_unless_the_receiver_is_only_probed() -> None:
    clock = Clock()
    held = Hand(clock)
    for ride_id in (1, 2, 3, 4):
        held.take(ride_id, f"{ride_id}-0")
    assert rides(held, 2) == [1, 2]
    held.postpone(2, 5)
    held.postpone(1, 10)
    assert (held.fresh, held.next_due_in()) == (2, 0)
    assert rides(held, 1) == [3]
    clock.now += 7
    assert rides(held, 1, fresh_first=True) == [4]
    assert rides(held, 9) == [2]
    assert held.next_due_in() == 3
    clock.now += 3
    assert rides(held, 9) == [1]
    assert held.next_due_in() == float("inf")


def test_a_ride_is_in_hand_once_whatever_number_of_entries_it_has() -> None:
    held = Hand(Clock())
    for entry in ("1-0", "1-1"):
        held.take(1, entry)
    held.take(2, None)
    assert rides(held, 9) == [1, 2]
    assert set(held.entries) == {"1-0", "1-1"}
    assert sorted(held.settle([1, 2])) == ["1-0", "1-1"]
    assert (len(held), list(held.entries)) == (0, [])


def test_what_others_have_claimed_is_given_up_but_for_what_is_under_way_or_swept() -> None:
    held = Hand(Clock())
    for ride_id in (1, 2, 3):
        held.take(ride_id, f"{ride_id}-0")
    held.take(3, None)
    held.take(4, "4-0")
    held.take(4, "4-1")
    assert held.lose(["1-0", "2-0", "3-0", "4-0", "9-9"], busy={2}) == 1
    assert [ride for ride in (1, 2, 3, 4) if ride in held] == [2, 3, 4]
    assert list(held.entries) == ["4-1"]
    assert rides(held, 9) == [2, 3, 4]


def test_what_was_given_up_and_is_taken_up_again_is_attempted_once() -> None:
    clock = Clock()
    held = Hand(clock)
    for again in range(2):
        held.take(1, f"1-{again}")
        assert rides(held, 9) == [1]
        held.postpone(1, 1)
        held.lose([f"1-{again}"], busy=())
    held.take(1, None)
    clock.now += 2
    assert rides(held, 9) == [1]
    held.suspect(1, 2)
    held.settle([1])
    held.take(1, None)
    assert (rides(held, 9), held.next_suspect()) == ([1], None)


def test_the_innocent_are_tried_before_what_has_lost_more_workers() -> None:
    held = Hand(Clock())
    for ride_id, unfinished in ((1, 5), (2, 2), (3, 3)):
        held.take(ride_id, f"{ride_id}-0")
        rides(held, 1)
        held.suspect(ride_id, unfinished)
    order = [held.next_suspect(), held.next_suspect(), held.next_suspect()]
    assert [errand.ride_id for errand in order if errand] == [2, 3, 1]
    assert held.next_suspect() is None


def test_there_is_room_for_so_many_and_no_more() -> None:
    held = Hand(Clock())
    for ride_id in range(hand.MOST):
        assert held.room
        held.take(ride_id, None)
    assert held.room == 0


def test_suspects_wait_long_and_take_no_room_from_others_but_are_not_without_number() -> None:
    held = Hand(Clock())
    for ride_id in range(2 * hand.MOST):
        assert held.room
        held.take(ride_id, None)
        rides(held, 1)
        held.suspect(ride_id, 2)
    assert held.room == 0


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
    delays = [Ended(RECEIPT, FAILED, number).delay for number in range(1, attempts)]
    assert sum(delays) > 600
    assert max(delays) <= LONGEST_DELAY
    assert 0.5 <= delays[0] <= 1


def test_what_the_receiver_asks_for_is_waited_for() -> None:
    asked = Verdict(Kind.RETRY, "503", retry_after=LONGEST_RETRY_AFTER)
    assert Ended(RECEIPT, asked, 1).delay == LONGEST_RETRY_AFTER


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
    report(Round(again=1), last=True)
    report(Round(delivered=[5], again=2), last=True)
    report(Round(), last=True)
    assert caplog.messages == [
        "2 receipts delivered",
        "1 receipt to be sent again later",
        "1 receipt delivered, 2 receipts to be sent again later",
    ]
