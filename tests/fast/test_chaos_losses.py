"""Whether rides are lost or doubled, what the receiver was sent, and whether runs are remembered:
judged from the evidence.

What a restore may undo is told from what is lost: sabotage of real code can't show that.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from lab.chaos.books import check
from lab.chaos.books.clients import undone
from lab.chaos.evidence import Answer, Ask, Evidence, FinalState, Restore
from lab.chaos.receiver import TAKEN, Delivery
from lab.chaos.runs import AGREED, DRIFTED, Run

ONE, TWO, GONE = Decimal("1.009"), Decimal("2.018"), Decimal("4.036")
MEANWHILE, LATER = 105.0, 120.0  # after the backup, and after the restore
RIDDEN = datetime(2026, 11, 22, tzinfo=UTC)


def answered(ride: int, distance: Decimal, at: float) -> Ask:
    answer = Answer(ride, distance, at, at + 0.1)
    return Ask(distance, whole=True, asked_at=at, answers=[answer])


def sound() -> Evidence:
    """Two rides are there, one delivered; another was answered after a backup, and then lost."""
    return Evidence(
        asks=[answered(1, ONE, 50), answered(3, TWO, LATER), answered(3, GONE, MEANWHILE)],
        final=FinalState({1: ONE, 3: TWO}, {1: RIDDEN}, {}, {1: "delivered"}, {}),
        restores=[Restore(began=100, killed=110)],
        deliveries=[Delivery("a", 1, ONE, RIDDEN, at=50, status=TAKEN)],
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


def send_nothing(evidence: Evidence) -> None:
    evidence.deliveries.clear()


def send_another_ride(evidence: Evidence) -> None:
    evidence.deliveries.append(Delivery("b", 1, TWO, RIDDEN, at=60, status=TAKEN))


def name_an_attempt_anew(evidence: Evidence) -> None:
    evidence.deliveries.append(evidence.deliveries[0]._replace(webhook_id="b"))


@pytest.mark.parametrize(
    ("breakage", "found"),
    [
        (send_nothing, "ride 1 is called delivered, but nobody has accepted its receipt"),
        (send_another_ride, "a receipt of ride 1 of 2.018 m at 2026-11-22 00:00:00+00:00, which"),
        (name_an_attempt_anew, "the receipt of ride 1 came under two webhook-ids"),
    ],
)
def test_a_receiver_that_was_sent_too_little_or_something_else_is_found(
    breakage: Callable[[Evidence], None], found: str
) -> None:
    evidence = sound()
    breakage(evidence)
    assert found in "\n".join(check(evidence))


def say_that_it_agreed(evidence: Evidence) -> None:
    evidence.runs[0].end = AGREED


def forget_it(evidence: Evidence) -> None:
    evidence.final.runs.clear()


@pytest.mark.parametrize(
    ("breakage", "found"),
    [
        (say_that_it_agreed, "run-1 agreed, and its report says held"),
        (forget_it, "run-1 is number 1, and held; its row says none"),
    ],
)
def test_a_run_that_is_forgotten_or_ends_otherwise_is_found(
    breakage: Callable[[Evidence], None], found: str
) -> None:
    evidence = sound()
    evidence.restores.clear()
    evidence.asks = evidence.asks[:2]
    held = {"run": 1, "status": "held"}
    evidence.runs.append(Run(1, end=DRIFTED, report=held, began=LATER, ended=LATER + 10))
    evidence.final.runs[1] = "held"
    assert check(evidence) == []
    breakage(evidence)
    assert check(evidence) == [found]
