"""What a run of chaos is going to do."""

from lab.chaos.faults import FAULTS
from lab.chaos.fleet import ORDINARY_RATE, SETTINGS, settings
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


def test_more_rides_a_second_meet_limits_of_as_many_seconds() -> None:
    assert settings(ORDINARY_RATE) == settings(1) == SETTINGS
    grown = settings(ORDINARY_RATE * 10)
    assert (grown["BATCH_SIZE"], grown["STREAM_MAX_LENGTH"]) == ("200", "10000")
    assert grown["RECEIPT_CONCURRENCY"] == "160"
    assert settings(1e6)["RECEIPT_CONCURRENCY"] == "256"  # no worker takes more
