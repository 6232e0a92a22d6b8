"""What a restore takes back is no loss, and is counted."""

from chaos.checker import check
from chaos.evidence import FinalStanding
from chaos.journal import Answer
from chaos.losses import undone
from tests.support.evidence import GONE, LATER, MEANWHILE, ONE, TWO, keep_another, sound


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
    final.rides[4], final.keys["d"], final.last_sent = GONE, 4, 4
    evidence.rollup = evidence.receipts = None
    final.consumers["c0"] = FinalStanding(4, ONE + TWO + GONE, unbelieved=3)
    assert check(evidence) == []
    assert undone(evidence, by_failover=False) == ([], [])
    gone.answers.pop()
    assert check(evidence) == []
    assert undone(evidence, by_failover=False) == ([], [gone])
