"""Whatever ride a receipt is about, whatever its receiver answers, and however often."""

import json
import math
import random
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from email.utils import format_datetime
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from consumers.receipts.breaker import LONGEST_PAUSE, TRIP, Breaker
from consumers.receipts.queue import AWAY_DELAY, FIRST_DELAY, LONGEST_DELAY, delay
from consumers.receipts.receipt import Receipt
from consumers.receipts.statements import LONGEST_WAIT
from consumers.receipts.verdict import (
    LONGEST_REASON,
    LONGEST_RETRY_AFTER,
    Kind,
    Verdict,
    judge,
    seconds_of,
)
from rocket_rides.distance import MOST
from tests.support.properties import always
from unified_log.log import LARGEST_ID
from unified_log.waiting import delays

METRES = st.integers(1, int(MOST * 1000)).map(lambda mm: Decimal(mm).scaleb(-3))
ZONES = st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(timezone)
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
RECEIPTS = st.builds(Receipt, st.integers(1, LARGEST_ID), METRES, TIMES, st.just("msg_1"))


@always
@given(RECEIPTS, ZONES)
def test_a_body_says_exactly_what_the_ride_is_in_whatever_zone(
    receipt: Receipt, zone: timezone
) -> None:
    body = receipt.body()
    assert receipt._replace(created_at=receipt.created_at.astimezone(zone)).body() == body
    told = json.loads(body, parse_float=Decimal, parse_int=Decimal)
    assert told["type"] == "ride.receipt"
    assert told["data"]["ride_id"] == receipt.ride_id
    assert told["data"]["distance"] == receipt.distance
    assert told["timestamp"] == told["data"]["created_at"]
    assert datetime.fromisoformat(told["timestamp"]) == receipt.created_at


ASKED = st.floats(0, LONGEST_RETRY_AFTER)
LUCK = st.integers(0, 1000)


def wait(number: int, luck: int, asked: float = 0, kind: Kind = Kind.RETRY) -> float:
    """Until the attempt after the `number`-th; `luck` is what the jitter is drawn from."""
    random.seed(luck)
    return delay(number, Verdict(kind, "", asked))


@always
@given(st.integers(1, 100), ASKED, LUCK)
def test_the_next_attempt_is_neither_too_soon_nor_ever_too_late(
    number: int, asked: float, luck: int
) -> None:
    own = wait(number, luck)
    assert FIRST_DELAY / 2 <= own <= LONGEST_DELAY
    assert wait(number, luck, asked) == max(asked, own) <= LONGEST_DELAY < LONGEST_WAIT
    for kind in (Kind.AWAY, Kind.STOPPED):
        assert wait(number, luck, asked, kind) == max(asked, AWAY_DELAY)
    # Receipts that failed together are not tried again together.
    assert len({wait(number, luck + other) for other in range(20)}) > 10


@always
@given(LUCK)
def test_each_attempt_is_later_than_the_one_before_and_the_ten_take_long_enough(luck: int) -> None:
    """So what a receiver does not take for some minutes is not dead."""
    waits = [wait(number, luck) for number in range(1, 10)]
    assert all(one < other or other >= LONGEST_DELAY / 2 for one, other in pairwise(waits))
    assert waits == sorted(waits)
    assert 10 * 60 <= sum(waits) <= 22 * 60


@always
@given(st.floats(0.001, 10), st.floats(1, 100), st.integers(0, 40))
def test_each_wait_is_twice_the_one_before_up_to_the_longest(
    first: float, times: float, number: int
) -> None:
    longest = first * times
    waits = delays(first, longest)
    for _ in range(number):
        next(waits)
    whole = min(first * 2**number, longest)
    assert whole / 2 <= next(waits) <= whole


@always
@given(st.integers(0, 999), st.binary(max_size=300), st.integers(0, 10**6))
def test_any_answer_has_a_meaning_in_one_bounded_line(
    status: int, body: bytes, retry_after: int
) -> None:
    verdict = judge(status, body, retry_after)
    assert verdict.kind is not Kind.AWAY
    assert (verdict.kind is Kind.DELIVERED) == (200 <= status < 300)
    assert 0 < len(verdict.reason) <= LONGEST_REASON
    assert verdict.reason.isprintable()
    assert 0 <= verdict.retry_after <= LONGEST_RETRY_AFTER


MINUTES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@always
@given(st.text() | st.integers().map(str))
@example("\xb2")
@example("Fri, 01 Jan 2027 00:00:00 +999999999999999999999")
@example("Fri, 32 Jan 99999 00:00:00 GMT")
def test_any_retry_after_is_a_number_of_seconds(value: str) -> None:
    assert 0 <= seconds_of(value) < math.inf


@always
@given(st.integers(-(10**6), 10**6), MINUTES)
def test_a_retry_after_that_is_a_date_is_the_time_until_then(seconds: int, zone: timezone) -> None:
    moment = datetime.now(zone) + timedelta(seconds=seconds)  # written without its fraction
    assert max(0, seconds - 2) <= seconds_of(format_datetime(moment)) <= max(0, seconds)


# An attempt that we stopped is none.
ENDS = st.sampled_from([kind for kind in Kind if kind is not Kind.STOPPED])


@always
@given(st.lists(st.tuples(st.floats(0, 5), ENDS)))
def test_a_receiver_is_only_probed_after_so_many_failures_in_a_row(
    story: list[tuple[float, Kind]],
) -> None:
    now = 0.0
    breaker = Breaker(64, lambda: now)
    failures = 0
    for seconds, kind in story:
        now += seconds
        assert breaker.is_open == (failures >= TRIP)
        assert breaker.pause <= LONGEST_PAUSE
        assert breaker.limit == (64 if failures < TRIP else int(breaker.pause == 0))
        breaker.note(Verdict(kind, ""))
        failures = 0 if kind in (Kind.DELIVERED, Kind.REFUSED) else failures + 1
