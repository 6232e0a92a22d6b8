"""Whatever range of time is asked for, and however a moment or a duration is written."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st
from werkzeug.exceptions import UnprocessableEntity

from api.parameters import moment_of
from api.periods import DAY, HOUR, LONGEST, Period
from consumers.rollup.dirty import _score
from tests.support.properties import always, briefly
from unified_log.log import LARGEST_ID

PERIODS = st.sampled_from([HOUR, DAY])
MOMENTS = st.datetimes(timezones=st.just(UTC))
LAST = datetime.max.replace(tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPANS = st.timedeltas(timedelta(microseconds=1), LONGEST)


@always
@given(PERIODS, MOMENTS, SPANS)
@example(DAY, LAST - timedelta(seconds=1), timedelta(seconds=1))
@example(HOUR, datetime(2026, 11, 22, 8, tzinfo=UTC), timedelta(hours=1))
def test_a_range_is_whole_periods_those_that_it_touches_and_no_other(
    period: Period, start: datetime, span: timedelta
) -> None:
    assume(start <= LAST - span)
    end = start + span
    first, until = period.asked_for(start, end)
    assert first <= start < end <= until
    assert start - first < period.length
    assert until - end < period.length
    for edge in (first, until):
        assert edge == LAST or (edge - EPOCH) % period.length == timedelta(0)


@always
@given(PERIODS, MOMENTS, st.timedeltas(LONGEST + timedelta(microseconds=1), timedelta(days=900)))
def test_a_range_that_is_too_long_or_backwards_is_refused(
    period: Period, start: datetime, span: timedelta
) -> None:
    assume(start <= LAST - span)
    with pytest.raises(UnprocessableEntity, match="at most 31 days apart"):
        period.asked_for(start, start + span)
    for end in (start, start + span):
        with pytest.raises(UnprocessableEntity, match="from must be before to"):
            period.asked_for(end, start)


OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timedelta(minutes=minutes))
WRITTEN = st.datetimes(timezones=OFFSETS.map(timezone)).map(datetime.isoformat)
# A moment, of which some characters are others.
CHANGED = st.builds(
    lambda text, begin, others: text[:begin] + others + text[begin + len(others) :],
    WRITTEN,
    st.integers(0, 32),
    st.text("0123456789", max_size=2) | st.text("0123456789TtZz:.+- ", max_size=2),
)
ANY = st.text(max_size=30) | st.from_regex(r"[0-9T:Z+-]{0,30}", fullmatch=True)
TEXTS = st.one_of(CHANGED, CHANGED, ANY)


@briefly
@given(TEXTS)
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    """Hypothesis itself fails where nearly all are refused."""
    try:
        moment = moment_of(text)
    except ValueError:
        reject()
    assert moment.tzinfo is UTC
    assert moment_of(moment.isoformat()) == moment


@always
@given(st.integers(1, LARGEST_ID) | st.integers(-2000, 0).map(lambda n: LARGEST_ID + n))
@example(2**53 + 1)
@example(2**62 + 257)
def test_a_marks_score_is_the_greatest_double_that_is_not_above_its_ride(ride: int) -> None:
    score = _score(ride)
    assert score <= ride < math.nextafter(score, math.inf)
    assert ride >= 2**53 or int(score) == ride
