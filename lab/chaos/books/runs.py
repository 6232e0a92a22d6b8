"""Judges how each run of the nightly job ended, and what is in the warehouse."""

from collections import Counter
from collections.abc import Iterator

from lab.chaos.evidence import Evidence
from lab.chaos.runs import AGREED, DRIFTED, FAILED

Findings = Iterator[str]
# What a run says of a broken warehouse, which no kill may lead to. A warehouse that belongs to a
# past that this database has lost is not broken.
ALARMING = (
    *("arehouse is broken", "arehouse can't be read", "is gone: it", "arehouse has another number"),
    *("arehouse and Postgres disagree", "arehouse disagreed", "arehouse was changed"),
)
# Unless a fail-over has lost what Postgres had noted of it.
DOUBTED = "arehouse can't be taken at its word"
ENDS_WITH = {"agreed": AGREED, "wrong": DRIFTED, "held": DRIFTED}
FULL = "No space left on device"


def every_run_ends_properly(evidence: Evidence) -> Findings:
    """Each with a status that it may have, and none has found the warehouse broken."""
    alarming = ALARMING if evidence.restores else (*ALARMING, DOUBTED)
    for run in evidence.runs:
        expected = run.tampered or FULL in run.said
        is_alarming = not expected and any(words in run.said for words in alarming)
        if run.end == FAILED or is_alarming:
            yield f"{run} {run.end}: {run.said[-500:]}"


def every_run_is_remembered(evidence: Evidence) -> Findings:
    """One that completed has a row, which says the same as its report and its exit status."""
    for run in evidence.runs:
        if not run.finished:
            continue
        number, status = run.report.get("run"), run.report.get("status")
        if ENDS_WITH.get(str(status)) != run.end:
            yield f"{run} {run.end}, and its report says {status}"
            continue
        row, restores = evidence.final.runs.get(number or 0, "none"), evidence.restores
        is_undone = any(one.began < run.ended and run.began < one.killed for one in restores)
        if row != status and not is_undone:
            yield f"{run} is number {number}, and {status}; its row says {row}"


def the_last_runs_agree(evidence: Evidence) -> Findings:
    """Each run after all faults finishes; the last one, after all repairs, agrees."""
    for run in evidence.last_runs:
        if not run.finished:
            yield f"{run}, after all faults, {run.end}: {run.said[-500:]}"
    for run in evidence.last_runs[-1:]:
        if run.finished and run.end != AGREED:
            yield f"{run}, after everything was repaired, found something wrong"


def the_warehouse_has_the_rides(evidence: Evidence) -> Findings:
    """All rides, each once, to the millimetre, as read without Spark."""
    warehouse, rides = evidence.warehouse, evidence.final.rides
    if warehouse is None:
        return
    there, right = Counter(warehouse), Counter(rides.items())
    for ride, distance in (there - right).elements():
        yield f"ride {ride} of {distance} m is in the warehouse more often than in Postgres"
    for ride, distance in (right - there).elements():
        yield f"ride {ride} of {distance} m is not in the warehouse"


CLAIMS = (
    every_run_ends_properly,
    every_run_is_remembered,
    the_last_runs_agree,
    the_warehouse_has_the_rides,
)
