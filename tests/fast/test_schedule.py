"""When the nightly run is due, also in the nights in which the clock is put forward or back."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from time import tzset
from zoneinfo import ZoneInfo

import pytest

from analytics.nightly import schedule
from analytics.nightly.local_time import local_zone
from rocket_rides import time_zone

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
    assert schedule.newest_due(berlin(now), THREE) == berlin(newest).astimezone(UTC)
    assert schedule.next_due(berlin(now), THREE) == berlin(following).astimezone(UTC)


def test_a_time_that_the_clock_leaves_out_is_due_after_the_jump() -> None:
    half_past_two = time(2, 30)
    due = schedule.next_due(berlin("2026-03-29 00:00"), half_past_two)
    assert due == berlin("2026-03-29 03:30").astimezone(UTC)


def test_a_time_that_the_clock_shows_twice_is_due_once() -> None:
    half_past_two = time(2, 30)
    first = schedule.next_due(berlin("2026-10-25 00:00"), half_past_two)
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    second_showing = berlin("2026-10-25 02:30", fold=1)
    assert schedule.newest_due(second_showing, half_past_two) == first
    assert schedule.next_due(second_showing, half_past_two) == berlin("2026-10-26 02:30")


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Says where we are: the C library looks at TZ when it is told to."""

    def say(where: str) -> None:
        monkeypatch.setenv("TZ", where)
        tzset()

    yield say
    monkeypatch.undo()
    tzset()


@pytest.mark.parametrize("fold", [0, 1])
def test_rules_that_tz_spells_out_are_followed_as_a_named_zones(
    say: Callable[[str], None], fold: int
) -> None:
    """At each half hour of a year, and in the hours that the clock leaves out or shows twice."""
    say("CET-1CEST,M3.5.0,M10.5.0/3")
    rules, moment = local_zone(), datetime(2026, 1, 1, tzinfo=UTC)
    while moment.year == 2026:
        there = moment.astimezone(BERLIN)
        assert (here := moment.astimezone(rules)).isoformat() == there.isoformat()
        assert (here.fold, here.tzname()) == (there.fold, there.tzname())
        wall = moment.replace(fold=fold)
        assert wall.replace(tzinfo=rules).utcoffset() == wall.replace(tzinfo=BERLIN).utcoffset()
        moment += timedelta(minutes=30)
    for at in (time(2), time(2, 30), THREE):
        for day in (datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)):
            due = schedule.next_due(day.astimezone(BERLIN), at)
            assert schedule.next_due(day.astimezone(rules), at) == due


@pytest.mark.parametrize(
    ("where", "is_at"),
    [
        ("JST-9", "+0900"),
        ("<+0330>-3:30", "+0330"),
        ("NST3:30NDT,M3.2.0,M11.1.0", "-0330"),
        (":/usr/share/zoneinfo/Asia/Tokyo", "+0900"),
        ("Asia/Tokyo", "+0900"),
        ("", "+0000"),
    ],
)
def test_every_way_to_say_where_one_is_is_heard(
    say: Callable[[str], None], where: str, is_at: str, caplog: pytest.LogCaptureFixture
) -> None:
    say(where)
    assert f"{datetime(2026, 1, 1, tzinfo=local_zone()):%z}" == is_at
    assert not caplog.messages


@pytest.mark.parametrize(
    "where",
    ["Foo/Bar", ":/nonexistent", "/etc/passwd", "Europe", "/", "../UTC", "-9", "\udcff", "A\n"],
)
def test_a_tz_that_says_nothing_is_utc_and_said(
    say: Callable[[str], None], where: str, caplog: pytest.LogCaptureFixture
) -> None:
    say(where)
    assert local_zone() is UTC
    assert caplog.messages == [
        f"TZ={where!a} names no time zone that is known here: it means UTC",
    ]


@pytest.mark.parametrize("where", ["XXX24", "XXX-24", "XXX-23YYY"])  # the last is so in summer
def test_a_local_time_that_python_cannot_express_is_utc_and_said_once(
    say: Callable[[str], None], where: str
) -> None:
    say(where)
    reason = "is a day or more from UTC, which Python can't express: it means UTC"
    assert time_zone.settle() == f"TZ={where} {reason}"
    assert time_zone.settle() == ""
    for month in (1, 7):
        assert f"{datetime(2026, month, 1, tzinfo=local_zone()):%z}" == "+0000"


@pytest.mark.parametrize("at", [time(0), time(0, 30), time(2), time(2, 30), THREE, time(23, 59)])
@pytest.mark.parametrize("zone", ZONES)
def test_every_day_of_a_year_has_one_due_time(zone: str, at: time) -> None:
    now = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    dues: list[datetime] = []
    while len(dues) < YEAR:
        dues.append(schedule.next_due(now, at))
        assert schedule.newest_due(dues[-1].astimezone(now.tzinfo), at) == dues[-1]
        now = (dues[-1] + timedelta(seconds=1)).astimezone(now.tzinfo)
    days = [due.astimezone(now.tzinfo).date() for due in dues]
    assert {after - before for before, after in pairwise(days)} == {timedelta(1)}


def test_a_day_that_the_calendar_leaves_out_makes_no_hole() -> None:
    apia = ZoneInfo("Pacific/Apia")  # went from the 29th to the 31st of December 2011
    now = datetime(2011, 12, 31, 1, tzinfo=apia)
    before = datetime(2011, 12, 29, 3, tzinfo=apia).astimezone(UTC)
    assert schedule.newest_due(now, THREE) == before
    assert schedule.next_due(now, THREE) == datetime(2011, 12, 31, 3, tzinfo=apia).astimezone(UTC)
