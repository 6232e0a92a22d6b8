"""When the nightly run is due, also in the nights in which the clock is put forward or back."""

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from analytics.nightly import nights

BERLIN = ZoneInfo("Europe/Berlin")
THREE = time(3)
YEAR = 365
# A jump over midnight (Cairo, in spring), by half an hour (Lord Howe), and over a day (Apia, 2011).
ZONES = ["Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "UTC"]


def berlin(text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)


@pytest.mark.parametrize(
    ("now", "newest", "following"),
    [
        ("2026-05-05 02:59:59", "2026-05-04 03:00", "2026-05-05 03:00"),
        ("2026-05-05 03:00:00", "2026-05-05 03:00", "2026-05-06 03:00"),
        ("2026-03-29 01:59:59", "2026-03-28 03:00", "2026-03-29 03:00"),  # put forward at 02:00
        ("2026-03-29 03:00:00", "2026-03-29 03:00", "2026-03-30 03:00"),
        ("2026-10-25 02:59:59", "2026-10-24 03:00", "2026-10-25 03:00"),  # put back at 03:00
    ],
)
def test_the_newest_due_time_is_todays_or_else_yesterdays(
    now: str, newest: str, following: str
) -> None:
    assert nights.newest_due(berlin(now), THREE) == berlin(newest).astimezone(UTC)
    assert nights.next_due(berlin(now), THREE) == berlin(following).astimezone(UTC)


def test_a_time_that_the_clock_leaves_out_is_due_after_the_jump() -> None:
    half_past_two = time(2, 30)
    due = nights.next_due(berlin("2026-03-29 00:00"), half_past_two)
    assert due == berlin("2026-03-29 03:30").astimezone(UTC)


def test_a_time_that_the_clock_shows_twice_is_due_once() -> None:
    half_past_two = time(2, 30)
    first = nights.next_due(berlin("2026-10-25 00:00"), half_past_two)
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    second_showing = berlin("2026-10-25 02:30", fold=1)
    assert nights.newest_due(second_showing, half_past_two) == first
    assert nights.next_due(second_showing, half_past_two) == berlin("2026-10-26 02:30")


@pytest.mark.parametrize("at", [time(0), time(0, 30), time(2), time(2, 30), THREE, time(23, 59)])
@pytest.mark.parametrize("zone", ZONES)
def test_every_day_of_a_year_has_one_due_time(zone: str, at: time) -> None:
    now = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    dues: list[datetime] = []
    while len(dues) < YEAR:
        dues.append(nights.next_due(now, at))
        assert nights.newest_due(dues[-1].astimezone(now.tzinfo), at) == dues[-1]
        now = (dues[-1] + timedelta(seconds=1)).astimezone(now.tzinfo)
    days = [due.astimezone(now.tzinfo).date() for due in dues]
    assert {after - before for before, after in pairwise(days)} == {timedelta(1)}


def test_a_day_that_the_calendar_leaves_out_makes_no_hole() -> None:
    apia = ZoneInfo("Pacific/Apia")  # went from the 29th to the 31st of December 2011
    now = datetime(2011, 12, 31, 1, tzinfo=apia)
    before = datetime(2011, 12, 29, 3, tzinfo=apia).astimezone(UTC)
    assert nights.newest_due(now, THREE) == before
    assert nights.next_due(now, THREE) == datetime(2011, 12, 31, 3, tzinfo=apia).astimezone(UTC)
