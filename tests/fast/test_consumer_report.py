"""What a consumer says of its rounds."""

import logging
from collections import Counter
from decimal import Decimal
from types import SimpleNamespace
from typing import cast

import pytest

from consumers.digest import Unbelieved
from consumers.report import Report
from consumers.rollup.lead import Lead
from consumers.rollup.report import Report as RollupReport
from consumers.round import HealedSum, Round
from lab.chaos.logs import MARKED
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


def test_chaos_reads_what_the_rollup_says_of_gaps(caplog: pytest.LogCaptureFixture) -> None:
    lead = SimpleNamespace(marker=SimpleNamespace(marked=4), indexer=SimpleNamespace(computed=0))
    caplog.set_level(logging.INFO)
    for gaps, rides in ((1, 1), (2, 30), (0, 4), (1, 0)):
        caplog.clear()
        done = Round(healing=HealedSum(gaps, rides, Decimal("8.100")))
        RollupReport()(done, cast(Lead, lead))
        found = MARKED.search(caplog.messages[0])
        assert found
        assert found.groups() == (str(rides), "8.100", str(gaps) if gaps else None)
