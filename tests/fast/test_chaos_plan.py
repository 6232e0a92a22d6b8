"""What a run of chaos is going to do."""

from chaos.faults import FAULTS
from chaos.nemesis import plan


def test_each_fault_has_its_turn_in_the_short_run_of_the_tests() -> None:
    """See tests/fleet/test_chaos.py."""
    assert {planned.kind for planned in plan(7, 20, list(FAULTS))} == set(FAULTS)


def test_the_seed_decides_the_plan() -> None:
    kinds = list(FAULTS)
    first, again, other = ([(p.at, p.kind) for p in plan(n, 60, kinds)] for n in (7, 7, 8))
    assert first == again != other
    assert {kind for _, kind in first} == set(kinds)
