"""Checks the nightly job: it called wrong what was, and nothing else, and all was repaired."""

from collections.abc import Iterator
from decimal import Decimal

from lab.chaos.drifts import MILLIMETRE, MINUTE, OUTCOME, TOTAL, Drift, Final
from lab.chaos.evidence import Evidence
from lab.chaos.night_report import Report
from lab.chaos.nights_evidence import COULD_NOT_RUN, DRIFTED, FAILED, Night
from lab.chaos.nights_seen import found_by, made_of, may_be_there, reports, told_of, was_there

Findings = Iterator[str]
NOT_WHOLE = ("arehouse is broken", "arehouse can't be read", "is gone: it")
FULL = "No space left on device"


def every_run_ends_properly(evidence: Evidence) -> Findings:
    """With a status that says what its JSON says, and with all that is to be compared."""
    for night in _nights(evidence):
        if night.end == FAILED or (night.end == COULD_NOT_RUN and is_alarming(night.said)):
            yield f"{night} {night.end}: {night.said[-500:]}"
        if not night.finished:
            continue
        report = night.report
        if report is None:
            yield f"{night} wrote no result"
        elif report.agrees != report.lists_nothing:
            says, lists = (
                ("agrees", "something") if report.agrees else ("does not agree", "nothing")
            )
            yield f"{night} says that it {says}, and calls {lists} wrong"
        elif report.agrees == (night.end == DRIFTED):
            says = "agrees" if report.agrees else "does not agree"
            yield f"{night} {says}, and ends as one that {night.end}"
        elif not report.mismatches and None in (report.rollup, report.receipts, report.outbox):
            yield f"{night} has not compared everything"


def nothing_is_called_wrong_that_was_right(evidence: Evidence) -> Findings:
    if evidence.nights is None:
        return
    for night, report in reports(evidence):
        may_be = [drift for drift in evidence.nights.made if may_be_there(evidence, drift, night)]
        for what in (
            *_wrong_totals(report, may_be),
            *_wrong_minutes(report, may_be),
            *_missing_outcomes(report, may_be),
            *report.others(),
        ):
            yield f"{night} called {what} wrong, and nobody had made it so"
        for note in report.notes:
            if is_alarming(note):
                yield f"{night} said: {note}"


def nothing_that_was_wrong_is_missed(evidence: Evidence) -> Findings:
    if evidence.nights is None:
        return
    for night, report in reports(evidence):
        found = {(drift.kind, drift.victim) for drift in found_by(evidence.nights.made, report)}
        there = [drift for drift in evidence.nights.made if was_there(evidence, drift, night)]
        for drift in there:
            if (drift.kind, drift.victim) not in found:
                yield f"{night} missed {drift}"
        counted = report.receipts.missing.rides if report.receipts else 0
        if counted < (least := sum(drift.kind == OUTCOME for drift in there)):
            yield f"{night} counted {counted} missing outcomes, of {least}"


def everything_is_repaired(evidence: Evidence) -> Findings:
    """And the last run, which begins when all is repaired, agrees."""
    if (nights := evidence.nights) is None:
        return
    for drift in nights.final:
        if drift.is_there:
            yield f"the drift of the {drift.kind} {drift.victim} was never repaired"
    for night in nights.last:
        if not night.finished:
            yield f"{night}, after all faults, {night.end}: {night.said[-500:]}"
    if nights.last and nights.last[-1].end == DRIFTED:
        yield f"{nights.last[-1]}, after everything was repaired, found something wrong"


def every_reset_has_its_drift(evidence: Evidence) -> Findings:
    """By where the total stood: when it was frozen it had a millimetre too much, and no other.

    Its drift was made before it came there, and was repaired no sooner.
    """
    if (nights := evidence.nights) is None:
        return
    for reset in nights.resets:
        applied = [
            one.from_ride_id
            for one in nights.resets
            if one.consumer == reset.consumer and one.from_ride_id is not None
        ]
        spans = [
            _span(drift, applied)
            for drift in nights.final
            if (drift.kind, drift.victim) == (TOTAL, reset.consumer)
        ]
        if reset.drift != MILLIMETRE or not any(
            first <= reset.frozen_at <= last for first, last in spans
        ):
            yield (
                f"the nightly job asked for a reset of {reset.consumer}, for {reset.drift:+} m at"
                f" ride {reset.frozen_at}, and nobody had made that"
            )


def the_warehouse_has_the_rides(evidence: Evidence) -> Findings:
    """All of them, to the millimetre, as another program than Spark reads it."""
    if (nights := evidence.nights) is None:
        return
    if nights.unreadable:
        yield f"the warehouse can't be read: {nights.unreadable}"
        return
    table = nights.table
    rides = evidence.final.rides
    for ride in sorted(table.keys() ^ rides.keys()):
        where = "the warehouse" if ride in table else "Postgres"
        yield f"ride {ride} is in {where} alone"
    for ride in sorted(table.keys() & rides.keys()):
        if table[ride] != rides[ride]:
            yield f"ride {ride} is of {rides[ride]} m, but of {table[ride]} m in the warehouse"
    for ride in nights.repeated:
        yield f"ride {ride} is in the warehouse more than once"


def is_alarming(said: str) -> bool:
    """Whether a run says that the warehouse is not whole, which no kill may lead to.

    That it is of a past that this database has lost is no reason for alarm.
    """
    return FULL not in said and any(words in said for words in NOT_WHOLE)


def _wrong_totals(report: Report, may_be: list[Drift]) -> Iterator[str]:
    known = {drift.victim for drift in may_be if drift.kind == TOTAL}
    for one in report.consumers:
        is_known = one.name in known and one.drift == MILLIMETRE and not one.stray
        if (one.wrong or one.drift or one.stray) and not is_known:
            yield f"the total of {one.name} ({one.drift:+} m{', stray' if one.stray else ''})"


def _wrong_minutes(report: Report, may_be: list[Drift]) -> Iterator[str]:
    known = {made_of(drift) for drift in may_be if drift.kind == MINUTE}
    for one in report.rollup.wrong if report.rollup else ():
        if told_of(one) not in known:
            yield f"the minute {one.minute:%H:%M} ({one.rolled_up})"


def _missing_outcomes(report: Report, may_be: list[Drift]) -> Iterator[str]:
    if report.receipts is None:
        return
    known = {int(drift.victim) for drift in may_be if drift.kind == OUTCOME}
    missing = report.receipts.missing
    if unknown := [ride for ride in missing.ids if ride not in known]:
        yield f"missing outcomes of the rides {unknown}"
    elif missing.rides > len(known):
        yield f"{missing.rides} missing outcomes, of {len(known)}"


def _span(drift: Final, applied: list[int]) -> tuple[int, Decimal | int]:
    """The rides at which a total had this drift: up to where the next reset found it."""
    before = int(drift.mark)
    return drift.last_ride_id, applied[before] if before < len(applied) else Decimal("Infinity")


def _nights(evidence: Evidence) -> list[Night]:
    return evidence.nights.nights if evidence.nights else []


CLAIMS = (
    every_run_ends_properly,
    nothing_is_called_wrong_that_was_right,
    nothing_that_was_wrong_is_missed,
    everything_is_repaired,
    every_reset_has_its_drift,
    the_warehouse_has_the_rides,
)
