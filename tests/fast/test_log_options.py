"""What `python -m rocket_rides.log` is asked: moments, durations, and refusals in one line."""

import pytest

from rocket_rides import durations
from rocket_rides.log.__main__ import parse_options
from rocket_rides.log.moments import milliseconds, shown
from rocket_rides.settings import load

NOW = 1_774_728_000_000  # 2026-03-28T20:00:00Z

MOMENTS = {
    "90": NOW - 90_000,
    "0.5s": NOW - 500,
    "10m": NOW - 600_000,
    "1.5h": NOW - 5_400_000,
    " 7d ": NOW - 604_800_000,
    "36500d": 0,  # before 1970, when no entry was
    "2026-03-28T20:00:00Z": NOW,
    "2026-03-28 20:00:00z": NOW,
    "2026-03-29t01:30:00+05:30": NOW,
    "2026-03-28T20:00:00.0001Z": NOW + 1,
    "2026-03-28T20:00:00.0009999999Z": NOW + 1,
    "1969-12-31T23:59:59Z": 0,
    "9999-12-31T23:59:59Z": 253402300799000,
}


@pytest.mark.parametrize("text", MOMENTS)
def test_a_moment_is_a_duration_back_or_an_rfc_3339_time(text: str) -> None:
    assert milliseconds(text, NOW) == MOMENTS[text]


NO_MOMENTS = """
    10x -10m 1e3 m ٣m 36501d 2026-03-28 2026-03-28T20:00:00 20:00:00Z 2026-02-30T00:00:00Z
    2026-03-28T25:00:00Z 2026-03-28T20:00:00+25:00 2026-03-28T20:00:0099999Z
    2026-03-28T20:00:00+05:99 2026-03-28T20:00:00.Z 2026-03-28T24:00:00Z 2026-03-28T20:00:60Z
    9999-12-31T23:59:59-01:00
"""


@pytest.mark.parametrize("text", NO_MOMENTS.split())
def test_what_is_no_moment_is_refused_in_one_line(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse_options([f"--since={text}"])
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert text in line


@pytest.mark.parametrize("options", [["--limit=0"], ["--limit=-1"], ["--limit=two"], ["--colour"]])
def test_a_bad_option_is_one_clear_line(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_options(options)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_moment_is_shown_in_utc_to_the_millisecond() -> None:
    assert shown(NOW + 7) == "2026-03-28T20:00:00.007Z"
    assert shown(2**64 - 1) is None


def test_the_log_keeps_entries_for_a_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().stream_max_age == durations.seconds("7d") == 604_800
    monkeypatch.setenv("STREAM_MAX_AGE", "12h")
    assert load().stream_max_age == 43_200
