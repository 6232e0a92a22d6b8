"""What a restore may undo is told from what is lost: sabotage of real code can't show that."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from lab.chaos.books.clients import undone
from lab.chaos.books.judge import check
from lab.chaos.evidence import Answer, Ask, Evidence, FinalState, Restore

ONE, TWO, GONE = Decimal("1.009"), Decimal("2.018"), Decimal("4.036")
MEANWHILE, LATER = 105.0, 120.0  # after the backup, and after the restore


def answered(ride: int, distance: Decimal, at: float) -> Ask:
    answer = Answer(ride, distance, at, at + 0.1)
    return Ask(distance, whole=True, asked_at=at, answers=[answer])


def sound() -> Evidence:
    """Two rides are there; another was answered after a backup, and lost by the restore."""
    return Evidence(
        asks=[answered(1, ONE, 50), answered(3, TWO, LATER), answered(3, GONE, MEANWHILE)],
        final=FinalState({1: ONE, 3: TWO}, {}, {}, {}, {}),
        restores=[Restore(began=100, killed=110)],
    )


def keep_another(evidence: Evidence, at: float) -> None:
    evidence.asks.append(answered(2, Decimal("5.045"), at))
    evidence.final.rides[2] = Decimal("5.045")


def lose_one_of_before_the_backup(evidence: Evidence) -> None:
    del evidence.final.rides[1]


def lose_one_of_after_the_restore(evidence: Evidence) -> None:
    del evidence.final.rides[3]


def lose_one_and_keep_a_later_one(evidence: Evidence) -> None:
    """So the backup, or the standby, had all that came before the later one."""
    keep_another(evidence, MEANWHILE + 1)


def restore_nothing(evidence: Evidence) -> None:
    evidence.restores.clear()


def take_one_twice(evidence: Evidence) -> None:
    evidence.final.rides |= {4: GONE, 5: GONE}


@pytest.mark.parametrize(
    ("breakage", "found"),
    [
        (lose_one_of_before_the_backup, "a ride of 1.009 m was answered (as [1]) and is lost"),
        (lose_one_of_after_the_restore, "a ride of 2.018 m was answered (as [3]) and is lost"),
        (lose_one_and_keep_a_later_one, "a ride of 4.036 m was answered (as [3]) and is lost"),
        (restore_nothing, "a ride of 4.036 m was answered (as [3]) and is lost"),
        (take_one_twice, "one ride of 4.036 m was asked for, but there are [4, 5]"),
    ],
)
def test_a_loss_that_no_restore_explains_is_found(
    breakage: Callable[[Evidence], None], found: str
) -> None:
    evidence = sound()
    keep_another(evidence, MEANWHILE - 1)  # an earlier one may have been in the backup
    assert check(evidence) == []
    assert undone(evidence) == 1
    evidence = sound()
    breakage(evidence)
    assert found in check(evidence)
