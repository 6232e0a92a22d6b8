"""What the nightly job leaves as evidence: a night that found three drifts, and one that agrees."""

from datetime import UTC, datetime
from decimal import Decimal

from lab.chaos.drifts import MILLIMETRE, MINUTE, OUTCOME, TOTAL, Drift, Final, Look, Proved
from lab.chaos.night_report import (
    Compared,
    Outbox,
    Receipts,
    Report,
    Rollup,
    Some,
    Tally,
    WrongMinute,
)
from lab.chaos.nights_evidence import AGREED, DRIFTED, Night, NightsEvidence, Reset

WRONG_MINUTE = datetime(2026, 11, 22, 12, 1, tzinfo=UTC)
OF_TOTAL = Drift("t", TOTAL, "c0", "0", tried=10, settled=10.1)
OF_MINUTE = Drift("m", MINUTE, "2026-11-22T12:01:00Z", "2/3.028/2", tried=11, settled=11.1)
OF_OUTCOME = Drift("o", OUTCOME, "1", "delivered", tried=12, settled=12.1)
ALL = frozenset("tmo")


def report(*, wrong: bool = False) -> Report:
    """What a run says that finds all three, or none."""
    return Report(
        agrees=not wrong,
        last_ride_id=2,
        consumers=[Compared("c0", MILLIMETRE if wrong else Decimal(0), stray=False, wrong=wrong)],
        mismatches=[],
        rollup=Rollup(2, [WrongMinute(WRONG_MINUTE, Tally(2, Decimal("3.028")))] if wrong else []),
        receipts=Receipts(2, Some(1, [1]) if wrong else Some(0, []), Some(0, [])),
        outbox=Outbox(Some(0, []), Some(0, []), Some(0, [])),
        notes=[],
    )


def look(at: float, there: frozenset[str] = frozenset()) -> Look:
    return Look(at, at + 0.1, there, there, Proved())


def night(number: int, began: float, before: Look, after: Look, *, wrong: bool) -> Night:
    """Ten seconds long."""
    end = DRIFTED if wrong else AGREED
    said = report(wrong=wrong)
    return Night(number, began, ended=began + 10, end=end, report=said, before=before, after=after)


def nights() -> NightsEvidence:
    """Three drifts are made, found and repaired; the last run agrees. There are rides 1 and 2."""
    looks = [look(5), look(20, ALL), look(31, ALL), look(40), look(51)]
    first = night(1, 20.5, looks[1], looks[2], wrong=True)
    second = night(2, 40.5, looks[3], looks[4], wrong=False)
    return NightsEvidence(
        [first, second],
        [OF_TOTAL, OF_MINUTE, OF_OUTCOME],
        looks,
        [second],
        [Final(drift.kind, drift.victim, drift.mark, 1) for drift in (OF_TOTAL, OF_MINUTE)]
        + [Final(OUTCOME, "1", "delivered")],
        [Reset("c0", MILLIMETRE, frozen_at=1, from_ride_id=2)],
        {1: Decimal("1.009"), 2: Decimal("2.018")},
    )
