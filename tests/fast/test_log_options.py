"""What `python -m unified_log.log` is asked: places, ranges, and refusals in one line."""

import json
import re

import pytest

from rocket_rides.settings import load
from tests.support.entries import fields
from unified_log import durations
from unified_log.log import Entry
from unified_log.log.__main__ import parse_options
from unified_log.log.lines import appended_at, as_json
from unified_log.log.pending import Group, Member, Pending
from unified_log.log.places import (
    DAY,
    LARGEST_PART,
    Age,
    Backwards,
    Id,
    Moment,
    Place,
    Position,
    TimeOfDay,
    after,
    before,
    between,
)

DURATIONS = {"90": 90, "0.5s": 0.5, "10m": 600, "1.5h": 5400, " 7d ": 604_800, "0s": 0}
NO_DURATIONS = "10x -10m 1e3 m \u0663m 2026-03-28"

MINUTE = 60_000  # milliseconds
HALF_PAST_TWO = (14 * 60 + 30) * MINUTE
PLACES: dict[str, Place] = {
    "521": Position(521),
    f" {2**63 - 1} ": Position(2**63 - 1),
    "1700000000000-0": Id((1_700_000_000_000, 0)),
    f"{LARGEST_PART}-{LARGEST_PART}": Id((LARGEST_PART, LARGEST_PART)),
    "14:30": TimeOfDay(HALF_PAST_TWO),
    "4:05:09": TimeOfDay(14_709_000),
    "23:59:59Z": TimeOfDay(DAY - 1000),
    "2026-03-28T20:00:00.007Z": Moment(1_774_728_000_007),
    "2026-03-28 21:00:00.007+01:00": Moment(1_774_728_000_007),
    "1970-01-01T00:00:00Z": Moment(0),
    "90s": Age(90),
    "1.5h": Age(5400),
}
NO_PLACES = [
    *("x", "1.5", "1e3", "10x", "-10m", "\u0663", f"{2**63}", "9" * 5000, "1-", "1-2-3"),
    *(f"{2**64}-0", f"0-{2**64}", "24:00", "14:60", "2026-03-28", "2026-03-28T20:00:00"),
    *("1969-12-31T23:59:59Z", "0001-01-01T00:00:00+01:00", "-", "+", "$", "(1-1", "5\n6"),
]
REFUSED = [
    ["--count=0"],
    ["--count=-1"],
    ["--count=\u0663"],
    ["--count=" + "9" * 5000],
    ["--count=9223372036854775808"],
    ["--fr", "5"],
    ["--follow", "--reverse"],
    ["--follow", "--to=5"],
    ["--from=10m", "--since=10m"],
    *(["--pending", with_] for with_ in ("--from=0", "--to=5", "--type=", "--reverse", "--follow")),
]

TRACE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOW = 1_774_728_000_000  # 2026-03-28T20:00:00Z
TODAY = NOW - NOW % DAY


@pytest.mark.parametrize("text", DURATIONS)
def test_a_duration_is_in_seconds_minutes_hours_or_days(text: str) -> None:
    assert parse_options([f"--since={text}"]).start == Age(DURATIONS[text])


@pytest.mark.parametrize("text", PLACES)
def test_a_place_is_a_position_an_id_a_time_or_an_age(text: str) -> None:
    given = parse_options([f"--from={text}", f"--to={text}"])
    assert given.start == given.end == PLACES[text]
    assert type(given.start) is type(PLACES[text])


def refusal(options: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which options are refused."""
    with pytest.raises(SystemExit) as end:
        parse_options(options)
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("text", NO_DURATIONS.split())
def test_what_is_no_duration_is_refused_in_one_line(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert text in refusal([f"--since={text}"], capsys)


@pytest.mark.parametrize("text", NO_PLACES)
@pytest.mark.parametrize("option", ["--from", "--to"])
def test_what_is_no_place_is_refused_in_one_line(
    option: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"{option}: {text!r}: a position is expected, " in refusal([f"{option}={text}"], capsys)


@pytest.mark.parametrize("options", REFUSED, ids=" ".join)
def test_options_that_make_no_sense_are_refused_in_one_line(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert options[0].partition("=")[0] in refusal(options, capsys)


def test_what_is_too_large_a_count_says_what_the_most_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "a number from 1 to 9223372036854775807 is" in refusal([f"--count={2**63}"], capsys)
    assert parse_options([f"--count={2**63 - 1}"]).count == 2**63 - 1


def test_help_names_every_member_of_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--help"])
    words = set(re.findall(r"\w+", capsys.readouterr().out))
    record = [*fields(5, "{}", 4, "a"), b"traceparent", TRACE, b"tracestate", b"a=1"]
    for each in (Entry("5-0", record), Entry("5-0", [b"x"])):
        assert set(json.loads(as_json(each))) <= words
    for kind in (Group, Member, Pending):
        assert set(kind._fields) <= words


def moments(start: str | None, end: str | None) -> tuple[int | None, int | None]:
    """The first and the last whole millisecond that lie between two places, at 20:00."""
    given = parse_options([f"--from={start}"] * bool(start) + [f"--to={end}"] * bool(end))
    first, last, lowest, highest = between(given.start, given.end, lambda: NOW)
    assert lowest is highest is None
    assert first is None or first[1] == 0
    assert last is None or last[1] == LARGEST_PART
    return first and first[0], last and last[0]


def test_a_time_is_the_one_that_has_just_passed_and_an_end_is_after_its_beginning() -> None:
    hour = 60 * MINUTE
    four, nine = TODAY + 16 * hour, TODAY + 21 * hour
    assert moments("16:00", None) == (four, None)
    assert moments("20:00", None) == (NOW, None)
    assert moments("21:00", None) == (nine - DAY, None)  # yesterday's
    assert moments(None, "16:00") == (None, four - 1)
    assert moments(None, "21:00") == (None, nine - DAY - 1)
    assert moments("16:00", "21:00") == (four, nine - 1)  # it goes on
    assert moments("21:00", "16:00") == (nine - DAY, four - 1)
    assert moments("2026-03-01T21:00:00Z", "16:00")[1] == four - 26 * DAY - 1
    assert moments("10m", "1m") == (NOW - 10 * MINUTE, NOW - MINUTE - 1)
    assert moments("99999d", "2026-03-28T20:00:00Z") == (0, NOW - 1)


def test_a_time_that_ends_a_range_which_an_id_begins_is_the_last_one_that_has_passed() -> None:
    four = TODAY + 16 * 60 * MINUTE
    assert moments("0-0", "16:00") == (0, four - 1)
    assert moments("0-0", "21:00") == (0, TODAY + 21 * 60 * MINUTE - DAY - 1)


def test_ids_and_positions_are_included_at_either_end() -> None:
    def never() -> int:
        raise AssertionError("nobody has to know what time it is")

    assert between(Id((5, 1)), Id((5, 1)), never) == ((5, 1), (5, 1), None, None)
    assert between(Position(0), Position(0), never) == (None, None, 0, 0)
    assert between(Position(5), Id((5, 1)), never) == (None, (5, 1), 5, None)
    assert between(None, Moment(0), never).last == (0, 0)  # which no entry has
    assert between(None, None, never) == (None, None, None, None)


@pytest.mark.parametrize(
    "places",
    [
        ("9", "8"),
        ("9-1", "9-0"),
        ("5m", "10m"),
        ("14:30", "14:30"),
        ("2026-03-28T20:00:00Z", "2026-03-28T20:00:00Z"),
    ],
)
def test_an_end_before_its_beginning_is_refused(places: tuple[str, str]) -> None:
    start, end = places
    given = parse_options([f"--from={start}", f"--to={end}"])
    with pytest.raises(Backwards, match="--from has to be before --to"):
        between(given.start, given.end, lambda: NOW)


def test_each_id_is_the_next_one_after_the_one_before() -> None:
    for redis_id in [(0, 1), (5, 0), (5, 7), (5, LARGEST_PART), (LARGEST_PART, LARGEST_PART)]:
        assert before(redis_id) < redis_id == after(before(redis_id)) < after(redis_id)
    assert before((0, 0)) == (0, 0)


def test_a_moment_is_shown_in_utc_to_the_millisecond() -> None:
    assert appended_at("1774728000007-5") == "2026-03-28T20:00:00.007Z"
    for milliseconds in range(10_413_792_000_000, 10_413_792_000_100):  # in the year 2300
        assert appended_at(f"{milliseconds}-0") == f"2300-01-01T00:00:00.{milliseconds % 1000:03}Z"
    assert appended_at(f"{2**64 - 1}-0") is None


def test_the_log_keeps_entries_for_a_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().stream_max_age == durations.seconds("7d") == 604_800
    monkeypatch.setenv("STREAM_MAX_AGE", "12h")
    assert load().stream_max_age == 43_200
