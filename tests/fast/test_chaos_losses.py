"""What a restore takes back, or the promotion of a standby that is behind, is counted apart."""

import random

from lab.chaos.books.judge import check
from lab.chaos.books.losses import Undoing, undone
from lab.chaos.journal import Answer
from lab.chaos.restore import Restore
from tests.support.evidence import GONE, LATER, MEANWHILE, ONE, keep_another, sound


def test_what_a_restore_undoes_is_told_apart() -> None:
    evidence = sound()
    gone = evidence.asks[3]
    assert undone(evidence, by_failover=False) == ([gone], [gone])
    keep_another(evidence, MEANWHILE - 1)  # an earlier one may have been in the backup
    assert "is lost" not in "\n".join(check(evidence))
    evidence.restores.clear()
    assert "4.036 m was answered (as [3]) and is lost" in "\n".join(check(evidence))


def test_a_lost_ride_may_come_back_once() -> None:
    """Its client has asked again, and has another answer; or an early request has come late."""
    evidence = sound()
    gone, final = evidence.asks[3], evidence.final
    gone.answers.append(Answer(4, GONE, LATER, LATER))
    final.rides[4], final.keys["d"] = GONE, 4
    evidence.receipts = {}
    assert check(evidence) == []
    assert undone(evidence, by_failover=False) == ([], [])
    gone.answers.pop()
    assert check(evidence) == []
    assert undone(evidence, by_failover=False) == ([], [gone])


def test_what_an_asynchronous_fail_over_loses_is_told_apart_from_what_a_restore_undoes() -> None:
    evidence = sound()
    gone = evidence.asks[3]
    evidence.restores = [each._replace(by_failover=True) for each in evidence.restores]
    assert check(evidence) == []
    assert undone(evidence, by_failover=True) == ([gone], [gone])
    assert undone(evidence, by_failover=False) == ([], [])


def test_a_fail_over_loses_nothing_of_before_the_standby_fell_behind() -> None:
    evidence = sound()
    [fail_over] = evidence.restores
    evidence.restores = [fail_over._replace(began=MEANWHILE + 1, by_failover=True)]
    assert "4.036 m was answered (as [3]) and is lost" in "\n".join(check(evidence))


def test_a_fail_over_loses_the_newest_rides_and_no_others() -> None:
    """A later ride, of the old primary, is there: so the standby had all that came before it."""
    evidence = sound()
    evidence.restores = [each._replace(by_failover=True) for each in evidence.restores]
    keep_another(evidence, MEANWHILE + 1)
    assert "4.036 m was answered (as [3]) and is lost" in "\n".join(check(evidence))


def test_a_synchronous_fail_over_excuses_nothing() -> None:
    evidence = sound()
    evidence.restores.clear()
    assert "4.036 m was answered (as [3]) and is lost" in "\n".join(check(evidence))


def test_what_may_be_undone_is_the_same_whether_looked_up_or_asked_of_each_restore() -> None:
    dice = random.Random(0)
    spans = [sorted(dice.choices(range(60), k=2)) for _ in range(2000)]
    restores = [Restore(began, killed) for began, killed in spans[:6]]
    answers = [Answer(1, ONE, *span) for span in spans]
    undoing = Undoing(restores)
    found = [undoing.may_undo(answer) for answer in answers]
    assert found == [any(each.may_undo(answer) for each in restores) for answer in answers]
    assert {*found} == {True, False}
    assert not Undoing([]).may_undo(answers[0])
