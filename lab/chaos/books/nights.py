"""The nightly job's runs: how each ended, what it left in the warehouse, and that all was repaired.

What a run called wrong is in Postgres: see `lab.chaos.books.nightly_statements`.
"""

from collections import Counter
from collections.abc import Iterator

from lab.chaos.evidence import Evidence
from lab.chaos.nights import AGREED, COULD_NOT_RUN, DRIFTED, FAILED

Findings = Iterator[str]
NOT_WHOLE = ("arehouse is broken", "arehouse can't be read", "is gone: it")
FULL = "No space left on device"


def every_run_ends_properly(evidence: Evidence) -> Findings:
    """With a status that says what its result says, and a warehouse that no kill has broken."""
    for night in evidence.nights.all:
        if night.end == FAILED or (night.end == COULD_NOT_RUN and is_alarming(night.said)):
            yield f"{night} {night.end}: {night.said[-500:]}"
        elif night.finished and not night.result:
            yield f"{night} wrote no result"
        elif night.finished:
            if night.result["agrees"] != (night.end == AGREED):
                yield f"{night} {night.end}, and says that agrees is {night.result['agrees']}"
            for mismatch in night.result["mismatches"]:
                yield f"{night} called the warehouse wrong: {mismatch}"
            for note in filter(is_alarming, night.result["notes"]):
                yield f"{night} said: {note}"


def the_last_runs_agree(evidence: Evidence) -> Findings:
    """Those after all faults get to their end, and the last, after all repairs, agrees."""
    for night in evidence.nights.last:
        if not night.finished:
            yield f"{night}, after all faults, {night.end}: {night.said[-500:]}"
    if evidence.nights.last and evidence.nights.last[-1].end == DRIFTED:
        yield f"{evidence.nights.last[-1]}, after everything was repaired, found something wrong"


def the_warehouse_has_the_rides(evidence: Evidence) -> Findings:
    """All of them, each once, to the millimetre, as another program than Spark reads it."""
    warehouse, rides = evidence.nights.warehouse, evidence.final.rides
    if warehouse is None:
        return
    there, right = Counter(warehouse), Counter(rides.items())
    for ride, distance in (there - right).elements():
        yield f"ride {ride} of {distance} m is in the warehouse, but not (again) in Postgres"
    for ride, distance in (right - there).elements():
        yield f"ride {ride} of {distance} m is not in the warehouse"


def is_alarming(said: str) -> bool:
    """Whether a run says that the warehouse is not whole, which no kill may lead to.

    That it is of a past that this database has lost is no reason for alarm.
    """
    return FULL not in said and any(words in said for words in NOT_WHOLE)


CLAIMS = (every_run_ends_properly, the_last_runs_agree, the_warehouse_has_the_rides)
