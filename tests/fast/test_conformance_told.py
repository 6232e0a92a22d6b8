"""The package's page says what the conformance suite knows of each outbox."""

from lab.blocks import contents, filled
from rocket_rides.settings import PROJECT
from tests.conformance.known import KNOWN, PAGE, as_table
from tests.conformance.trial import Verdict


def test_the_page_says_what_each_outbox_is_known_to_do() -> None:
    page = (PROJECT / PAGE).read_text()
    assert "conformance" in contents(page)
    told = filled(page, {"conformance": lambda: as_table(KNOWN)})
    assert told == page, "make conformance writes it anew"


def test_ours_survives_everything_and_each_naive_outbox_fails_somewhere() -> None:
    ours, *naive = zip(*KNOWN.values(), strict=True)
    assert {*ours} == {Verdict.HOLDS}
    assert all({*verdicts} > {Verdict.HOLDS} for verdicts in naive)
