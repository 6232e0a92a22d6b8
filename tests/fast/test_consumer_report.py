"""What a consumer may be called, and what it says of its rounds."""

import argparse
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from unified_log.readers.committed import Ignored
from unified_log.readers.report import Report
from unified_log.readers.round import Round
from unified_log.readers.running import consumer_name
from unified_log.terms import NO_TERM
from unified_log.tracing import Trace


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="a consumer's name has"):
        consumer_name(name)


@pytest.mark.parametrize("name", ["x" * 64, "Ünïcode 'quoted\" name", "-- drop"])
def test_any_other_name_will_do(name: str) -> None:
    assert consumer_name(name) == name


def test_ordinary_crashes_do_not_silence_the_warning_about_a_stranger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = Report("me")
    for number in range(1000):
        report.entries(Round(ignored=Ignored(uncommitted=Counter({b"%d" % number: 1}))))
    caplog.clear()
    for _ in range(3):
        stranger = Ignored(foreign=Counter({b"stranger": 5}), uncommitted=Counter({NO_TERM: 7}))
        report.entries(Round(ignored=stranger))
    first, second = caplog.messages
    assert first.startswith("me skipped 5 entries from another database")
    assert second.startswith("me skipped 7 entries without a term, as versions before terms")


def test_the_line_about_a_batch_names_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    handler = SimpleNamespace(RECORD="ride")
    reader: Any = SimpleNamespace(handler=handler, at=SimpleNamespace(position=3))
    trace = Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    Report("me")(Round(records=["a", "b"], traces={2: trace}), reader)
    [line] = caplog.records
    assert line.__dict__["trace_id"] == trace.id
