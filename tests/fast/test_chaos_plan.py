"""What a run of chaos is going to do."""

from lab.chaos.faults import FAULTS
from lab.chaos.nemesis import plan


def test_each_fault_has_its_turn_in_the_short_run_of_the_tests() -> None:
    """See tests/fleet/test_chaos.py."""
    assert {planned.kind for planned in plan(7, 20, list(FAULTS))} == set(FAULTS)


def test_the_seed_decides_the_plan() -> None:
    kinds = list(FAULTS)
    first, again, other = ([(p.at, p.kind) for p in plan(n, 60, kinds)] for n in (7, 7, 8))
    assert first == again != other
    assert {kind for _, kind in first} == set(kinds)


def test_faults_come_as_often_as_is_wanted() -> None:
    number = len([*plan(7, 2400, list(FAULTS), every=1.9)])
    assert 0.9 < number / (2400 / 1.9) < 1.1
