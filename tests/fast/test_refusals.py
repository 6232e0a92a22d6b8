"""What a worker makes of a receiver that declines, by a clock of its own and without servers."""

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.receipts import refusals
from consumers.receipts.breaker import LONGEST_IF_DECLINED, Breaker
from consumers.receipts.queue import SHORTEST_DELAY, Attempt, delay
from consumers.receipts.receipt import Receipt
from consumers.receipts.refusals import SEVERAL, Refusals
from consumers.receipts.verdict import Kind, Verdict, judge
from tests.support.properties import always

AT_ONCE, MOST = 8, 10  # attempts at once; attempts of a receipt
HOUR = 3600.0


def attempt(ride_id: int = 1, number: int = 1, reason: str | None = None) -> Attempt:
    taken = datetime(2026, 11, 28, 8, 30, tzinfo=UTC)
    receipt = Receipt(ride_id, Decimal("539.837"), taken, f"receipt_{ride_id}")
    return Attempt(receipt, UUID(int=0), math.inf, number, reason=reason)


@dataclass
class Played:
    """A worker, and a receiver that answers a ride with a status, by the moment of its answer."""

    answers: Callable[[int, float], int]
    takes: Callable[[], float] = lambda: 0.02  # seconds until the answer
    asked: list[tuple[float, int]] = field(default_factory=list)  # when, and about which ride
    outcomes: dict[int, Kind] = field(default_factory=dict)
    counted: Counter[int] = field(default_factory=Counter)  # attempts, by ride
    now: float = 0.0

    def run(self, arrivals: list[float], until: float = math.inf) -> None:
        """Deliver the receipts of rides that come at these times: ride 1, 2 and so on."""
        random.seed(1)
        breaker, known = Breaker(AT_ONCE, lambda: self.now), Refusals(lambda: self.now)
        reasons: dict[int, str] = {}
        due = [(at, ride) for ride, at in enumerate(sorted(arrivals), 1)]
        under_way: list[tuple[float, int, float, float]] = []
        while (due or under_way) and self.now < until:
            if under_way and (not due or under_way[0][0] <= max(due[0][0], self.now)):
                self.now, ride, began, taken_at = heapq.heappop(under_way)
                made = attempt(ride, self.counted[ride], reasons.get(ride))
                verdict = judge(self.answers(ride, self.now))
                decided = known.decide(made, verdict, began, taken_at)
                breaker.note(decided if decided.kind is Kind.REFUSED else verdict)
                verdict = decided
                self.counted[ride] -= verdict.kind is Kind.AWAY
                reasons[ride] = verdict.reason
                if verdict.kind is Kind.RETRY and self.counted[ride] == MOST:
                    verdict = verdict._replace(kind=Kind.REFUSED)
                if verdict.kind in (Kind.DELIVERED, Kind.REFUSED):
                    self.outcomes[ride] = verdict.kind
                else:
                    heapq.heappush(due, (self.now + delay(made.number, verdict), ride))
            elif len(under_way) < breaker.limit:
                at, ride = heapq.heappop(due)
                self.now = max(at, self.now)
                self.asked.append((self.now, ride))
                self.counted[ride] += 1
                ends = self.now + self.takes()
                heapq.heappush(under_way, (ends, ride, self.now, known.taken_at))
            else:
                self.now += breaker.pause or 0.001

    def rides(self, kind: Kind) -> list[int]:
        return sorted(ride for ride, of in self.outcomes.items() if of is kind)


def steadily(rate: float, seconds: float) -> list[float]:
    return [number / rate for number in range(int(rate * seconds))]


SECONDS = st.floats(0, 20)


@always
@given(st.lists(SECONDS, min_size=1, max_size=30), SECONDS, st.floats(0, 60), st.floats(0.001, 3))
def test_no_receipt_is_dead_because_everything_was_declined_for_a_while(
    arrivals: list[float], begins: float, lasts: float, slow: float
) -> None:
    """However few there are, and however long answers take."""
    played = Played(
        lambda _, at: 404 if begins <= at < begins + lasts else 204,
        lambda: slow * random.random(),
    )
    played.run(arrivals)
    assert len(played.rides(Kind.DELIVERED)) == len(arrivals)


def test_thirty_seconds_of_404_kill_no_receipt_and_are_answered_with_few_requests() -> None:
    played = Played(lambda _, at: 404 if 10 <= at < 40 else 204)
    played.run(steadily(20, 50))
    assert played.rides(Kind.DELIVERED) == [*range(1, 1001)]
    assert max(played.counted.values()) <= 3
    assert sum(10 <= at < 40 for at, _ in played.asked) < 30 + 30 / (LONGEST_IF_DECLINED / 2)


@pytest.mark.parametrize(("status", "times"), [(422, 2), (404, 2), (401, 2), (302, 2), (410, 1)])
def test_what_is_declined_among_others_that_are_taken_is_dead_after_its_second_attempt(
    status: int, times: int
) -> None:
    played = Played(lambda ride, _: 204 if ride % 3 else status)
    played.run(steadily(20, 20), until=30)
    dead = [ride for ride in played.rides(Kind.REFUSED) if ride < 390]  # others come after it
    assert dead == [*range(3, 390, 3)]
    asked = Counter(ride for _, ride in played.asked)
    assert {asked[ride] for ride in dead} == {times}


def test_half_of_a_burst_is_refused_as_soon_as_the_other_half_is_taken() -> None:
    played = Played(lambda ride, _: 204 if ride % 2 else 422)
    played.run([0.0] * 41, until=10)
    assert played.rides(Kind.DELIVERED) == [*range(1, 42, 2)]
    assert played.rides(Kind.REFUSED) == [*range(2, 42, 2)]


def test_a_run_of_receipts_that_are_never_taken_holds_others_back_for_a_while_at_most() -> None:
    never = range(101, 141)
    played = Played(lambda ride, _: 422 if ride in never else 204)
    played.run(steadily(20, 60))
    assert played.rides(Kind.REFUSED) == [*never]
    assert max(at for at, ride in played.asked if ride == 141) < 10 + 40 * LONGEST_IF_DECLINED


def test_a_wrong_address_kills_nothing_in_hours_and_is_asked_every_two_seconds() -> None:
    played = Played(lambda *_: 405)
    played.run(steadily(1, 20), until=2 * HOUR)
    assert played.outcomes == {}
    assert max(played.counted.values()) < MOST
    assert len(played.asked) < 50 + 2 * HOUR / (LONGEST_IF_DECLINED / 2)


def test_a_receipt_that_is_declined_while_no_other_comes_uses_up_its_attempts() -> None:
    played = Played(lambda ride, _: 422 if ride > 1 else 204)
    played.run([0, HOUR, 2 * HOUR])
    assert played.rides(Kind.REFUSED) == [2, 3]
    assert len(played.asked) == 1 + 2 * MOST


def test_it_is_dead_before_that_once_another_was_taken() -> None:
    played = Played(lambda ride, _: 422 if ride == 5 else 204)
    played.run(steadily(1 / 60, HOUR))
    assert played.rides(Kind.REFUSED) == [5]
    assert played.counted[5] < MOST


class Worker:
    """One attempt after another, each of which takes no time."""

    now = 1000.0

    def __init__(self) -> None:
        self.known = Refusals(lambda: self.now)

    def hears(self, verdict: Verdict, ride_id: int = 1, before: str | None = None) -> Kind:
        made = attempt(ride_id, reason=before)
        return self.known.decide(made, verdict, self.now, self.known.taken_at).kind


TAKEN, GONE = judge(204), judge(404, b"who are you?")


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ("status 404: where is it?", Kind.REFUSED),
        ("status 404", Kind.REFUSED),
        ("status 403", Kind.RETRY),
        ("timed out after 10 s", Kind.RETRY),
        (None, Kind.RETRY),
    ],
)
def test_what_another_worker_was_answered_stands_in_the_row(before: str, kind: Kind) -> None:
    worker = Worker()
    worker.hears(TAKEN, 2)
    worker.now += SHORTEST_DELAY - 0.01  # so the other one was declined before
    assert worker.hears(GONE, 1, before) is kind


def test_a_receipt_may_have_been_declined_only_after_another_was_taken() -> None:
    """By another worker, a delay ago; or by this one."""
    other, one = Worker(), Worker()
    other.hears(TAKEN, 2)
    other.now += SHORTEST_DELAY
    assert other.hears(GONE, 1, "status 404") is Kind.RETRY
    one.hears(TAKEN, 2)
    one.now += 0.01
    one.hears(GONE)
    one.now += 0.01
    assert one.hears(GONE, 1, GONE.reason) is Kind.RETRY


def test_what_was_taken_after_an_attempt_began_says_nothing_about_it() -> None:
    """Its answer may be older, and all was declined until then."""
    worker = Worker()
    worker.hears(GONE)
    began, taken_at = worker.now, worker.known.taken_at
    worker.now += 1
    worker.hears(TAKEN, 2)
    again = worker.known.decide(attempt(reason=GONE.reason), GONE, began, taken_at)
    assert again.kind is Kind.RETRY


def test_after_several_are_declined_an_attempt_costs_nothing_until_one_is_taken() -> None:
    worker = Worker()
    heard = [worker.hears(GONE, ride) for ride in range(1, SEVERAL + 3)]
    assert heard == [Kind.RETRY] * (SEVERAL - 1) + [Kind.AWAY] * 3
    assert worker.hears(GONE, 1, GONE.reason) is Kind.AWAY
    worker.hears(TAKEN, 99)
    worker.now += 1
    assert worker.hears(GONE, 100) is Kind.RETRY


def test_a_worker_remembers_a_bounded_number_of_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MOST_KNOWN", 10)
    worker = Worker()
    for ride in range(1, 100):
        worker.hears(GONE, ride)
        if ride % 3 == 0:
            worker.hears(TAKEN, 1000 + ride)
    assert len(worker.known._declined_at) == 10
