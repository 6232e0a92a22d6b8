"""Which drifts a run of the nightly job may have come across, and which it must have.

A drift *may* have been there during a run, unless a look before the run did not find it. It *was*
there if the looks before and after the run, and all in between, found it. Between two looks a
restore, or a fail-over with loss, may have undone a drift, or brought one back that was repaired:
so nothing is concluded across one.
"""

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from lab.chaos.drifts import MILLIMETRE, MINUTE, TOTAL, Drift, figures
from lab.chaos.evidence import Evidence
from lab.chaos.night_report import Report, Some, WrongMinute
from lab.chaos.nights_evidence import Night


def reports(evidence: Evidence) -> Iterator[tuple[Night, Report]]:
    for night in evidence.nights.nights if evidence.nights else ():
        if night.report:
            yield night, night.report


def may_be_there(evidence: Evidence, drift: Drift, night: Night) -> bool:
    """Whether this run may have come across it."""
    assert evidence.nights is not None  # noqa: S101
    return drift.tried <= night.ended and not any(
        drift.settled <= look.asked
        and look.answered <= night.began
        and drift.token not in look.there
        and not _is_rewound(evidence, look.asked, night.ended)
        for look in evidence.nights.looks
    )


def was_there(evidence: Evidence, drift: Drift, night: Night) -> bool:
    """Whether this run had to come across it."""
    assert evidence.nights is not None  # noqa: S101
    before, after = night.before, night.after
    return (
        before is not None
        and after is not None
        and drift.token in before.there
        and drift.token in after.due
        and all(
            drift.token in look.there
            for look in evidence.nights.looks
            if before.asked <= look.asked <= after.asked
        )
        and not _is_rewound(evidence, before.asked, after.answered)
    )


def found_by(drifts: Iterable[Drift], report: Report) -> Iterator[Drift]:
    """Those that a run reported. It names the lowest rides without an outcome, and counts all."""
    totals = {one.name for one in report.consumers if one.drift == MILLIMETRE}
    minutes = {told_of(one) for one in report.rollup.wrong} if report.rollup else set()
    missing = report.receipts.missing if report.receipts else Some(0, [])
    named = max(missing.ids) if missing.rides > len(missing.ids) else math.inf
    for drift in drifts:
        if drift.kind == TOTAL:
            found = drift.victim in totals
        elif drift.kind == MINUTE:
            found = made_of(drift) in minutes
        else:
            found = int(drift.victim) in missing.ids or int(drift.victim) > named
        if found:
            yield drift


def was_found(evidence: Evidence, drift: Drift) -> bool:
    """Whether a run reported it, while it may have been there."""
    return any(
        may_be_there(evidence, drift, night) and any(found_by([drift], report))
        for night, report in reports(evidence)
    )


def made_of(drift: Drift) -> tuple[datetime, tuple[int, Decimal]]:
    """A minute, and what the nemesis made of it."""
    return datetime.fromisoformat(drift.victim), figures(drift.mark)


def told_of(wrong: WrongMinute) -> tuple[datetime, tuple[int, Decimal] | None]:
    """The same as a run tells it."""
    row = wrong.rolled_up
    return wrong.minute, (row.rides, row.distance) if row else None


def _is_rewound(evidence: Evidence, since: float, until: float) -> bool:
    return any(
        since <= restore.killed <= until for restore in (*evidence.restores, *evidence.in_vain)
    )
