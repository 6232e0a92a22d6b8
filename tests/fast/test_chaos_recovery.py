"""How long a fleet takes to recover from a fault."""

from chaos.journal import Ask
from chaos.nemesis import Struck
from chaos.observer import Look, Watch
from chaos.recovery import recoveries
from chaos.restore import Restore
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
