"""What `python -m rocket_rides.log` is asked: durations, and refusals in one line."""

import pytest

from rocket_rides import durations
from rocket_rides.log import Entry
from rocket_rides.log.__main__ import appended_at, parse_options
from rocket_rides.settings import load

DURATIONS = {"90": 90, "0.5s": 0.5, "10m": 600, "1.5h": 5400, " 7d ": 604_800, "0s": 0}
NO_DURATIONS = "10x -10m 1e3 m \u0663m 2026-03-28"


@pytest.mark.parametrize("text", DURATIONS)
def test_a_duration_is_in_seconds_minutes_hours_or_days(text: str) -> None:
    assert parse_options([f"--since={text}"]).since == DURATIONS[text]


@pytest.mark.parametrize("text", NO_DURATIONS.split())
def test_what_is_no_duration_is_refused_in_one_line(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse_options([f"--since={text}"])
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert text in line


def test_a_moment_is_shown_in_utc_to_the_millisecond() -> None:
    assert appended_at(Entry("1774728000007-5", [])) == "2026-03-28T20:00:00.007Z"
    assert appended_at(Entry(f"{2**64 - 1}-0", [])) is None


def test_the_log_keeps_entries_for_a_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().stream_max_age == durations.seconds("7d") == 604_800
    monkeypatch.setenv("STREAM_MAX_AGE", "12h")
    assert load().stream_max_age == 43_200
