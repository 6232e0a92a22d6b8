"""The nightly job's runs: how each ended, and what they left in the warehouse.

What a run called wrong is in Postgres: see `lab.chaos.books.nightly_statements`.
"""

from collections import Counter
from collections.abc import Iterator

from lab.chaos.evidence import Evidence
from lab.chaos.nights import AGREED, FAILED

Findings = Iterator[str]
# What a run says of a warehouse that is not whole, which no kill may lead to. That it is of a past
# that this database has lost is no reason for alarm.
ALARMING = (
    "arehouse is broken",
    "arehouse can't be read",
    "is gone: it",
    "arehouse and Postgres disagree",
    "arehouse disagreed",
)
FULL = "No space left on device"


def every_run_ends_properly(evidence: Evidence) -> Findings:
    """With a status that it may have, and a warehouse that no kill has broken."""
    for night in evidence.nights:
        is_alarming = FULL not in night.said and any(words in night.said for words in ALARMING)
        if night.end == FAILED or is_alarming:
            yield f"{night} {night.end}: {night.said[-500:]}"


def the_last_runs_agree(evidence: Evidence) -> Findings:
    """Those after all faults get to their end, and the last, after all repairs, agrees."""
    for night in evidence.last_nights:
        if not night.finished:
            yield f"{night}, after all faults, {night.end}: {night.said[-500:]}"
    for night in evidence.last_nights[-1:]:
        if night.finished and night.end != AGREED:
            yield f"{night}, after everything was repaired, found something wrong"


def the_warehouse_has_the_rides(evidence: Evidence) -> Findings:
    """All of them, each once, to the millimetre, as another program than Spark reads it."""
    warehouse, rides = evidence.warehouse, evidence.final.rides
    if warehouse is None:
        return
    there, right = Counter(warehouse), Counter(rides.items())
    for ride, distance in (there - right).elements():
        yield f"ride {ride} of {distance} m is in the warehouse, but not (again) in Postgres"
    for ride, distance in (right - there).elements():
        yield f"ride {ride} of {distance} m is not in the warehouse"


CLAIMS = (every_run_ends_properly, the_last_runs_agree, the_warehouse_has_the_rides)
