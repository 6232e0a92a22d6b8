"""Judges how each run of the nightly job ended, and what is in the warehouse.

What a run called wrong is judged by `lab.chaos.books.statements`.
"""

from collections import Counter
from collections.abc import Iterator

from lab.chaos.evidence import Evidence
from lab.chaos.nights import AGREED, FAILED

Findings = Iterator[str]
# What a run says of a broken warehouse, which no kill may lead to. A warehouse that belongs to a
# past that this database has lost is not broken.
ALARMING = (
    "arehouse is broken",
    "arehouse can't be read",
    "is gone: it",
    "arehouse and Postgres disagree",
    "arehouse disagreed",
)
FULL = "No space left on device"


def every_run_ends_properly(evidence: Evidence) -> Findings:
    """Each with a status that it may have, and none has found the warehouse broken."""
    for night in evidence.nights:
        is_alarming = FULL not in night.said and any(words in night.said for words in ALARMING)
        if night.end == FAILED or is_alarming:
            yield f"{night} {night.end}: {night.said[-500:]}"


def the_last_runs_agree(evidence: Evidence) -> Findings:
    """Each run after all faults finishes; the last one, after all repairs, agrees."""
    for night in evidence.last_nights:
        if not night.finished:
            yield f"{night}, after all faults, {night.end}: {night.said[-500:]}"
    for night in evidence.last_nights[-1:]:
        if night.finished and night.end != AGREED:
            yield f"{night}, after everything was repaired, found something wrong"


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


CLAIMS = (every_run_ends_properly, the_last_runs_agree, the_warehouse_has_the_rides)
