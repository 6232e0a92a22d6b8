"""How long a fleet takes to recover from a fault."""

import pytest

from lab.chaos.journal import Ask
from lab.chaos.nemesis import Struck
from lab.chaos.observer import Look, Watch
from lab.chaos.recovery import Recovery, recoveries, too_slow
from lab.chaos.restore import Restore
from tests.support.evidence import GONE, ONE, TWO, answered


def watch(*looks: tuple[float, int]) -> Watch:
    found = Watch(str, 1)
    found.looks = [Look(at, at, counted) for at, counted in looks]
    return found


def recovery(ended: float, asks: list[Ask], watch: Watch) -> list[float]:
    struck = [Struck(0, ended, "kill", "api")]
    return [found.seconds for found in recoveries(struck, asks, watch, [Restore(100, 110)])]


def test_recovery_is_measured_within_one_life_of_the_database() -> None:
    """Ride 8 is drawn twice: before a restore, and after it."""
    asks = [answered(8, ONE, "a", 105), answered(9, TWO, "b", 106), answered(8, GONE, "c", 120)]
    counted = watch((104, 7), (107, 8), (108, 9), (112, 5), (123, 8))
    assert recovery(104, asks, counted) == [3]
    assert recovery(111, asks, counted) == [12]


def test_what_is_lost_before_it_is_counted_is_no_recovery() -> None:
    asks = [answered(8, ONE, "a", 105), answered(6, TWO, "b", 120)]
    assert recovery(104, asks, watch((104, 7), (112, 5), (123, 6), (130, 8))) == [19]
    assert recovery(104, asks, watch((104, 7), (112, 5))) == []


def chains(struck: list[Struck], counted: Watch) -> list[Recovery]:
    asks = [answered(ride, ONE, str(ride), at) for ride, at in ((1, 10), (2, 20), (3, 30), (4, 40))]
    return recoveries(struck, asks, counted)


PROMPT = watch((11, 1), (21, 2), (31, 3), (41, 4))
FIRST, SECOND = Struck(5, 8, "kill", "api"), Struck(15, 18, "freeze", "api")


def test_a_fleet_recovers_from_one_fault_after_another() -> None:
    found = chains([SECOND, FIRST], PROMPT)
    assert found == [Recovery(3, "kill of api", 1, 3), Recovery(3, "freeze of api", 1, 3)]


def test_faults_that_overlap_by_a_chain_are_recovered_from_together() -> None:
    """The last to begin need not be the last to end."""
    long, short = Struck(7, 28, "redis-full-long", "redis"), Struck(9, 10, "kill", "api")
    assert chains([FIRST, long, short], PROMPT) == [Recovery(3, "redis-full-long of redis", 3, 23)]


@pytest.mark.parametrize(("victim", "faults"), [("receipts0", 1), ("rollup1", 1), ("api", 2)])
def test_who_keeps_no_ride_from_the_totals_lengthens_no_chain(victim: str, faults: int) -> None:
    frozen = Struck(7, 28, "freeze", victim)
    assert chains([FIRST, frozen], PROMPT)[0].faults == faults


def test_an_onlooker_that_ends_by_an_error_says_so() -> None:
    class Blind(Watch):
        def look_on(self) -> None:
            raise ValueError("it is dark")

    onlooker = Blind(str, 1)
    onlooker.start()
    onlooker.end()
    assert onlooker.error == "the watch ended: it is dark"


def test_no_recovery_waits_for_the_end_of_what_keeps_no_ride_from_the_totals() -> None:
    night = Struck(7, 28, "nightly", "the job")
    assert chains([FIRST, night, SECOND], PROMPT) == [
        Recovery(3, "kill of api", 1, 3),
        Recovery(3, "freeze of api", 1, 3),
        Recovery(3, "nightly of the job", 1, 0),
    ]


def test_a_fault_before_the_recovery_from_another_belongs_to_the_same_chain() -> None:
    late = watch((16, 1), (21, 2))
    assert chains([FIRST, SECOND], late) == [Recovery(3, "freeze of api", 2, 13)]


def test_a_slow_recovery_is_found() -> None:
    """The totals stand still long after the last of the faults has ended."""
    slow = chains([FIRST, SECOND], watch((41, 4)))
    assert [*too_slow(slow, 23)] == []
    assert [*too_slow(slow, 10)] == [
        "after freeze of api, the last of 2 faults that overlapped, it took 23.0 s until rides "
        "were counted, and may take 10 s"
    ]
