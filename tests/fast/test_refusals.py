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
from consumers.receipts.queue import Attempt, delay
from consumers.receipts.receipt import Receipt
from consumers.receipts.refusals import IN_A_ROW, QUIET, SURE, TAKEN, Refusals
from consumers.receipts.verdict import Kind, Verdict, judge
from tests.support.properties import always

AT_ONCE, MOST = 8, 10  # attempts at once; attempts of a receipt
HOUR = 3600.0


def attempt(ride_id: int = 1, number: int = 1) -> Attempt:
    taken = datetime(2026, 11, 28, 8, 30, tzinfo=UTC)
    receipt = Receipt(ride_id, Decimal("539.837"), taken, f"receipt_{ride_id}")
    return Attempt(receipt, UUID(int=0), math.inf, number)


@dataclass
class Played:
    """Workers on one queue, and a receiver that answers a ride with a status, by the moment."""

    answers: Callable[[int, float], int]
    takes: Callable[[], float] = lambda: 0.02  # seconds until the answer
    workers: int = 1
    restarts: tuple[float, ...] = ()  # when all workers end, after what is under way, and begin
    asked: list[tuple[float, int]] = field(default_factory=list)  # when, and about which ride
    outcomes: dict[int, Kind] = field(default_factory=dict)
    counted: Counter[int] = field(default_factory=Counter)  # attempts, by ride
    now: float = 0.0

    def run(self, arrivals: list[float], until: float = math.inf) -> None:
        """Deliver the receipts of rides that come at these times: ride 1, 2 and so on."""
        random.seed(1)
        workers, restarts = self.begun(), [*self.restarts]
        due = [(at, ride) for ride, at in enumerate(sorted(arrivals), 1)]
        under_way: list[tuple[float, int, Worker, int]] = []
        while (due or under_way) and self.now < until:
            if restarts and self.now >= restarts[0]:
                restarts.pop(0)
                workers = self.begun()
            free = [worker for worker in workers if worker.free]
            next_due = max(due[0][0], self.now) if due and free else math.inf
            if under_way and under_way[0][0] <= next_due:
                self.now, ride, worker, taken = heapq.heappop(under_way)
                worker.under_way -= 1
                made = attempt(ride, self.counted[ride])
                verdict = worker.notes(made, judge(self.answers(ride, self.now)), taken)
                self.counted[ride] -= verdict.kind is Kind.AWAY
                if verdict.kind is Kind.RETRY and self.counted[ride] == MOST:
                    verdict = verdict._replace(kind=Kind.REFUSED)
                if verdict.kind in (Kind.DELIVERED, Kind.REFUSED):
                    self.outcomes[ride] = verdict.kind
                else:
                    heapq.heappush(due, (self.now + delay(made.number, verdict), ride))
            elif due and free:
                at, ride = heapq.heappop(due)
                self.now = max(at, self.now)
                self.asked.append((self.now, ride))
                self.counted[ride] += 1
                worker = random.choice(free)
                worker.under_way += 1
                heapq.heappush(
                    under_way, (self.now + self.takes(), ride, worker, worker.known.taken)
                )
            else:
                self.now += min(worker.breaker.pause for worker in workers) or 0.001

    def begun(self) -> list["Worker"]:
        return [Worker(lambda: self.now) for _ in range(self.workers)]

    def rides(self, kind: Kind) -> list[int]:
        return sorted(ride for ride, of in self.outcomes.items() if of is kind)


class Worker:
    """What one worker knows. As `consumers.receipts.delivery` has them at work together."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.breaker, self.known = Breaker(AT_ONCE, clock), Refusals(clock)
        self.under_way = 0

    def __lt__(self, _: "Worker") -> bool:
        return False

    @property
    def free(self) -> bool:
        return self.under_way < self.breaker.limit

    def notes(self, made: Attempt, answered: Verdict, taken: int) -> Verdict:
        verdict = self.known.decide(made, answered, taken)
        fails = verdict.kind is Kind.AWAY and self.known.is_quiet
        if fails or answered.kind is not Kind.DECLINED:
            self.breaker.note(answered)
        return verdict


def steadily(rate: float, seconds: float) -> list[float]:
    return [number / rate for number in range(int(rate * seconds))]


SECONDS = st.floats(0, 20)


@always
@given(
    st.lists(SECONDS, min_size=1, max_size=30),
    SECONDS,
    st.floats(0, 60),
    st.floats(0.001, 3),
    st.integers(1, 3),
    st.lists(st.floats(0, 80), max_size=2).map(sorted),
)
def test_no_receipt_is_dead_because_everything_was_declined_for_a_while(
    arrivals: list[float],
    begins: float,
    lasts: float,
    slow: float,
    workers: int,
    restarts: list[float],
) -> None:
    """However few there are, and however long answers take, and whoever is restarted."""
    played = Played(
        lambda _, at: 404 if begins <= at < begins + lasts else 204,
        lambda: slow * random.random(),
        workers,
        tuple(restarts),
    )
    played.run(arrivals)
    assert len(played.rides(Kind.DELIVERED)) == len(arrivals)


def test_thirty_seconds_of_404_kill_no_receipt_and_are_answered_with_few_requests() -> None:
    played = Played(lambda _, at: 404 if 10 <= at < 40 else 204)
    played.run(steadily(20, 50))
    assert played.rides(Kind.DELIVERED) == [*range(1, 1001)]
    assert max(played.counted.values()) <= 4
    in_vain = sum(10 <= at < 40 for at, _ in played.asked)
    assert in_vain < 2 * 20 * QUIET + 30 / (LONGEST_IF_DECLINED / 2)


@pytest.mark.parametrize("taken", [0.05, 1 / 3, 2 / 3])
def test_a_receiver_that_recovers_slowly_gets_every_receipt(taken: float) -> None:
    """As while one of three processes is the new one."""
    chance = random.Random(5)
    played = Played(lambda _, at: 204 if at > 60 or (at > 30 and chance.random() < taken) else 404)
    played.run(steadily(20, 80))
    assert played.rides(Kind.REFUSED) == []


@pytest.mark.parametrize("every", [300.0, 600.0])
def test_a_receipt_that_is_taken_now_and_then_kills_no_other(every: float) -> None:
    """In two hours in which all others are declined, and two workers are restarted twice."""
    took = Counter[int]()

    def answers(_: int, at: float) -> int:
        turn = int(at // every)
        took[turn] += 1
        return 204 if at > 2 * HOUR or took[turn] == 1 else 404

    played = Played(answers, workers=2, restarts=(HOUR / 3, HOUR))
    played.run([0.0] * 60 + steadily(1 / 60, HOUR))
    assert played.rides(Kind.REFUSED) == []


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("waiting", [2, 20])
def test_an_outage_kills_nothing_whoever_is_restarted_meanwhile(waiting: int, workers: int) -> None:
    played = Played(
        lambda _, at: 404 if at < 2 * HOUR else 204, workers=workers, restarts=(60, HOUR)
    )
    played.run([0.0] * waiting + steadily(1 / 60, 2 * HOUR))
    assert played.rides(Kind.REFUSED) == []


@pytest.mark.parametrize(
    ("status", "times"), [(422, SURE), (404, SURE), (401, SURE), (302, SURE), (410, 1)]
)
def test_what_is_declined_among_others_that_are_taken_is_dead_soon(status: int, times: int) -> None:
    played = Played(lambda ride, _: 204 if ride % 20 else status)
    played.run(steadily(20, 20), until=30)
    dead = [ride for ride in played.rides(Kind.REFUSED) if ride < 300]  # others come after it
    assert dead == [*range(20, 300, 20)]
    asked = Counter(ride for _, ride in played.asked)
    assert {asked[ride] for ride in dead} == {times}


def test_a_receiver_that_refuses_half_of_them_gets_the_others_at_once() -> None:
    arrivals = [0.0] * 100 + steadily(1, HOUR)
    played = Played(lambda ride, _: 204 if ride % 2 else 422)
    played.run(arrivals, until=HOUR)
    assert {*range(2, 100, 2)} <= {*played.rides(Kind.REFUSED)}
    assert not any(ride % 2 for ride in played.rides(Kind.REFUSED))
    waited = [at - arrivals[ride - 1] for at, ride in played.asked if ride % 2]
    assert max(waited) < 2 * LONGEST_IF_DECLINED


def test_a_run_of_receipts_that_are_never_taken_holds_up_no_other() -> None:
    never = range(101, 141)
    played = Played(lambda ride, _: 422 if ride in never else 204)
    played.run(steadily(20, 60))
    assert played.rides(Kind.REFUSED) == [*never]
    assert max(at for at, ride in played.asked if ride == 141) < 10


def test_a_wrong_address_kills_nothing_in_hours_and_is_asked_every_two_seconds() -> None:
    played = Played(lambda *_: 405)
    played.run(steadily(1, 20), until=2 * HOUR)
    assert played.outcomes == {}
    assert max(played.counted.values()) < MOST
    assert len(played.asked) < 50 + 2 * HOUR / (LONGEST_IF_DECLINED / 2)


def test_a_receipt_that_is_declined_while_no_other_comes_uses_up_its_attempts() -> None:
    played = Played(lambda ride, _: 422 if ride == 2 else 204)
    played.run([0, HOUR])
    assert played.rides(Kind.REFUSED) == [2]
    assert len(played.asked) == 1 + MOST


def test_several_that_are_declined_while_no_other_comes_wait_until_one_is_taken() -> None:
    played = Played(lambda ride, _: 422 if ride in (2, 3) else 204)
    played.run([0, HOUR, HOUR, 2 * HOUR], until=2 * HOUR)
    assert played.rides(Kind.REFUSED) == []
    others = [2 * HOUR + after for after in steadily(1 / 60, HOUR)]
    again = Played(played.answers)
    again.run([0, HOUR, HOUR, *others])
    assert again.rides(Kind.REFUSED) == [2, 3]


def test_it_is_dead_before_that_once_others_were_taken() -> None:
    played = Played(lambda ride, _: 422 if ride == 5 else 204)
    played.run(steadily(1 / 60, HOUR))
    assert played.rides(Kind.REFUSED) == [5]
    assert played.counted[5] < MOST


TAKEN_ONE, GONE = judge(204), judge(404, b"who are you?")


class Hearing(Worker):
    """Attempts that take no time, but for the clock."""

    now = 1000.0

    def __init__(self) -> None:
        super().__init__(lambda: self.now)

    def hears(self, verdict: Verdict, ride_id: int = 1, number: int = SURE) -> Kind:
        return self.notes(attempt(ride_id, number), verdict, self.known.taken).kind

    def takes(self, receipts: int) -> None:
        for ride_id in range(100, 100 + receipts):
            self.hears(TAKEN_ONE, ride_id)


def test_it_takes_several_attempts_and_several_others_since_the_first() -> None:
    worker = Hearing()
    worker.takes(TAKEN)  # before
    assert worker.hears(GONE) is Kind.RETRY
    worker.takes(TAKEN - 1)
    assert worker.hears(GONE) is Kind.RETRY
    worker.takes(1)
    assert worker.hears(GONE, number=SURE - 1) is Kind.RETRY
    assert worker.hears(GONE) is Kind.REFUSED


def test_what_was_taken_after_an_attempt_began_says_nothing_about_it() -> None:
    """Its answer may be older, and all was declined until then."""
    worker = Hearing()
    worker.hears(GONE)
    began = worker.known.taken
    worker.takes(TAKEN)
    assert worker.known.decide(attempt(number=SURE), GONE, began).kind is Kind.RETRY


def test_after_a_while_without_one_that_is_taken_an_attempt_costs_nothing() -> None:
    worker = Hearing()
    worker.takes(1)
    heard = [worker.hears(GONE, ride) for ride in range(1, IN_A_ROW + 2)]
    assert heard == [Kind.RETRY] * (IN_A_ROW - 1) + [Kind.AWAY] * 2
    worker.takes(1)
    assert worker.hears(GONE, 1) is Kind.RETRY
    worker.now += QUIET
    assert [worker.hears(GONE, ride) for ride in (2, 3)] == [Kind.AWAY] * 2
    worker.takes(1)
    assert worker.hears(GONE, 100) is Kind.RETRY
    worker.now += QUIET
    assert worker.hears(GONE, 100) is Kind.RETRY  # it may be the only one
    assert worker.hears(GONE, 101) is Kind.AWAY


def test_a_worker_remembers_a_bounded_number_of_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MOST_KNOWN", 10)
    worker = Hearing()
    for ride in range(1, 100):
        worker.hears(GONE, ride)
    assert len(worker.known._known) == 10
