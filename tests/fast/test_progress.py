"""What a process says while nothing works, and when it works again: each thing once."""

import logging
import time
from collections.abc import Callable

import pytest

from unified_log.streamer.upkeep import AN_HOUR, Alarms
from unified_log.waiting import Progress


def lines(caplog: pytest.LogCaptureFixture, tell: Callable[[Progress], None]) -> list[str]:
    """What a process that has worked before says."""
    caplog.set_level("INFO")
    progress = Progress()
    progress.made()
    caplog.clear()
    tell(progress)
    return caplog.messages


def test_a_server_that_is_just_coming_up_is_no_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, whatever the reasons; and a warning when it lasts."""
    caplog.set_level("INFO")
    progress = Progress()
    for reason in ("the server is away", "the table is not there"):
        progress.failed(reason)
    progress.made()
    progress.announce("at 1")
    assert caplog.messages == ["waiting: the server is away", "at 1"]

    caplog.clear()
    monkeypatch.setattr("unified_log.waiting.STARTING_UP", 0)
    progress = Progress()
    progress.failed("the server is away")
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]


def test_a_line_is_said_again_only_when_it_has_changed(caplog: pytest.LogCaptureFixture) -> None:
    def tell(progress: Progress) -> None:
        for line in ("at 1", "at 1", "at 2"):
            progress.announce(line)

    assert lines(caplog, tell) == ["at 1", "at 2"]


def test_after_a_failure_a_line_waits_for_progress(caplog: pytest.LogCaptureFixture) -> None:
    def tell(progress: Progress) -> None:
        progress.announce("at 1")
        for _ in range(3):
            progress.failed("the server is away")
            progress.announce("at 1")
        progress.made()
        progress.made()
        progress.announce("at 1")

    why = "the server is away; trying again until it works"
    assert lines(caplog, tell) == ["at 1", why, "at 1"]


def test_what_failed_again_is_not_said(caplog: pytest.LogCaptureFixture) -> None:
    def tell(progress: Progress) -> None:
        progress.failed("the server is away")
        progress.announce("at 1")
        progress.failed("the table is gone")
        progress.made()

    assert "at 1" not in lines(caplog, tell)


def test_what_stays_true_is_said_again_after_an_hour(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms, broken = Alarms(), {"broken": logging.WARNING}
    for _ in range(3):
        alarms.say(broken)
    assert caplog.messages == ["broken"]
    an_hour_later = time.monotonic() + AN_HOUR
    monkeypatch.setattr("unified_log.streamer.upkeep.time.monotonic", lambda: an_hour_later)
    alarms.say(broken)
    assert caplog.messages == ["broken"] * 2
