"""What a consumer says of its rounds."""

from collections import Counter

import pytest

from consumers.belief import Unbelieved
from consumers.report import Report
from rocket_rides.terms import NO_TERM


def test_ordinary_crashes_do_not_silence_the_warning_about_a_stranger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = Report("me")
    for number in range(1000):
        unbelieved = Unbelieved(uncommitted=Counter({b"%d" % number: 1}))
        report.unbelieved(unbelieved)
    caplog.clear()
    for _ in range(3):
        stranger = Unbelieved(foreign=Counter({b"stranger": 5}), uncommitted=Counter({NO_TERM: 7}))
        report.unbelieved(stranger)
    first, second = caplog.messages
    assert first.startswith("me skipped 5 entries from another database")
    assert second.startswith("me skipped 7 entries without a term, as the previous version")
