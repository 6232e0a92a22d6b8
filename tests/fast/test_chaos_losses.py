"""What a restore takes back, or the promotion of a standby that is behind, is counted apart."""

from lab.chaos.books.clients import undone
from lab.chaos.books.judge import check
from lab.chaos.journal import Answer
from tests.support.evidence import GONE, LATER, MEANWHILE, keep_another, sound

LOST = "4.036 m was answered (as [3]) and is lost"


def test_what_a_restore_undoes_is_told_apart() -> None:
    evidence = sound()
    assert undone(evidence) == 1
    keep_another(evidence, MEANWHILE - 1)  # an earlier one may have been in the backup
    assert check(evidence) == []
    evidence.restores.clear()
    assert LOST in "\n".join(check(evidence))


def test_a_lost_ride_may_come_back_once() -> None:
    """Its client has asked again, and has another answer; or an early request has come late."""
    evidence = sound()
    gone, final = evidence.asks[3], evidence.final
    gone.answers.append(Answer(4, GONE, LATER, LATER))
    final.rides[4], final.keys["d"] = GONE, 4
    final.outcomes.clear()
    assert check(evidence) == []
    assert undone(evidence) == 0
    gone.answers.pop()
    assert check(evidence) == []


def test_a_fail_over_loses_nothing_of_before_the_standby_fell_behind() -> None:
    evidence = sound()
    [fail_over] = evidence.restores
    evidence.restores = [fail_over._replace(began=MEANWHILE + 1)]
    assert LOST in "\n".join(check(evidence))
