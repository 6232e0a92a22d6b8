"""What the judge of the books finds in the nightly job's runs: each mistake made on purpose."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from lab.chaos.books.nights import CLAIMS
from lab.chaos.evidence import Evidence
from lab.chaos.nights import AGREED, COULD_NOT_RUN, DRIFTED, FAILED, KILLED, Night
from tests.support.evidence import sound

BROKEN = "The warehouse is broken: a file is missing"
MISMATCH = "The warehouse and Postgres disagree:"


def night(end: str, said: str = "") -> Night:
    return Night(1, end, 10.0, said)


def sound_nights() -> Evidence:
    """One run was killed, one could not run, one found drifts, and the last agreed."""
    evidence = sound()
    last = [night(DRIFTED), night(AGREED)]
    full_disk = night(COULD_NOT_RUN, f"{BROKEN}: No space left on device")
    evidence.nights, evidence.last_nights = [night(KILLED), full_disk, *last], last
    evidence.warehouse = [*evidence.final.rides.items()]
    return evidence


def found(evidence: Evidence) -> str:
    return "\n".join(sentence for claim in CLAIMS for sentence in claim(evidence))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (night(FAILED, "Traceback"), "night-1 failed: Traceback"),
        (night(COULD_NOT_RUN, BROKEN), f"night-1 could not run: {BROKEN}"),
        (night(DRIFTED, MISMATCH), f"night-1 found drifts: {MISMATCH}"),
        (night(AGREED, BROKEN), f"night-1 agreed: {BROKEN}"),
    ],
)
def test_a_run_that_ends_otherwise_is_found(wrong: Night, expected: str) -> None:
    evidence = sound_nights()
    assert found(evidence) == ""
    evidence.nights.append(wrong)
    assert found(evidence) == expected


def lose_a_ride(evidence: Evidence) -> None:
    evidence.warehouse = (evidence.warehouse or [])[1:]


def have_one_twice(evidence: Evidence) -> None:
    evidence.warehouse = [*(evidence.warehouse or []), (1, Decimal("1.009"))]


def have_another_distance(evidence: Evidence) -> None:
    evidence.warehouse = [(1, Decimal("1.010")), *(evidence.warehouse or [])[1:]]


def never_agree(evidence: Evidence) -> None:
    evidence.last_nights.append(night(DRIFTED))


def be_killed_after_all_faults(evidence: Evidence) -> None:
    evidence.last_nights.insert(0, night(KILLED))


@pytest.mark.parametrize(
    ("breakage", "expected"),
    [
        (lose_a_ride, "ride 1 of 1.009 m is not in the warehouse"),
        (have_one_twice, "ride 1 of 1.009 m is in the warehouse, but not (again) in Postgres"),
        (have_another_distance, "ride 1 of 1.010 m is in the warehouse, but not"),
        (never_agree, "night-1, after everything was repaired, found something wrong"),
        (be_killed_after_all_faults, "night-1, after all faults, killed"),
    ],
)
def test_a_warehouse_or_an_end_that_is_not_right_is_found(
    breakage: Callable[[Evidence], None], expected: str
) -> None:
    evidence = sound_nights()
    breakage(evidence)
    assert expected in found(evidence)
