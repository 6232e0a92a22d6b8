"""What the judge of the books finds in the clients' journal: each mistake made on purpose."""

import signal
from collections.abc import Callable
from decimal import Decimal

import pytest

from lab.chaos.books.judge import check
from lab.chaos.books.tables import most_of
from lab.chaos.evidence import Evidence
from lab.chaos.journal import Answer
from lab.chaos.service import Exit
from tests.support.evidence import (
    GONE,
    LATER,
    MEANWHILE,
    TWO,
    keep_another,
    sound,
)


def lose_a_ride(evidence: Evidence) -> None:
    """It was answered after the restore."""
    del evidence.final.rides[3]


def lose_a_ride_of_before_the_backup(evidence: Evidence) -> None:
    del evidence.final.rides[1]


def lose_what_was_asked_for_after_the_crash(evidence: Evidence) -> None:
    evidence.asks[3].answers = [Answer(3, GONE, sent=110.1, came=112)]


def lose_what_was_answered_again_after_the_restore(evidence: Evidence) -> None:
    evidence.asks[3].answers.append(Answer(4, GONE, LATER, LATER))


def lose_one_and_keep_a_later_one(evidence: Evidence) -> None:
    """So the backup, or the standby, had all that came before the later one."""
    """The old server had both."""
    keep_another(evidence, MEANWHILE + 1)


def answer_another_distance(evidence: Evidence) -> None:
    evidence.asks[3].answers[0] = Answer(3, TWO, MEANWHILE, MEANWHILE)


def take_a_lost_one_twice(evidence: Evidence) -> None:
    evidence.final.rides |= {4: GONE, 5: GONE}


def change_a_ride(evidence: Evidence) -> None:
    evidence.final.rides[3] = Decimal("2.017")


def take_one_twice(evidence: Evidence) -> None:
    evidence.final.rides[4] = Decimal("2.018")


def take_half_a_request(evidence: Evidence) -> None:
    evidence.final.rides[4] = Decimal("3.027")


def take_what_nobody_asked_for(evidence: Evidence) -> None:
    evidence.final.rides[4] = Decimal("0.5")


def forget_the_key(evidence: Evidence) -> None:
    del evidence.final.keys["b"]


def never_answer(evidence: Evidence) -> None:
    evidence.asks[1].answers.clear()


def die_by_itself(evidence: Evidence) -> None:
    evidence.exits.append(Exit("consumer0", 1, None, 10))


def fail_on_sigterm(evidence: Evidence) -> None:
    evidence.exits.append(Exit("consumer0", 1, signal.SIGTERM, 10))


@pytest.mark.parametrize(
    ("breakage", "expected"),
    [
        (lose_a_ride, "answered (as [3]) and is lost"),
        (lose_a_ride_of_before_the_backup, "answered (as [1]) and is lost"),
        (lose_what_was_asked_for_after_the_crash, "4.036 m was answered (as [3]) and is lost"),
        (lose_what_was_answered_again_after_the_restore, "answered (as [3, 4]) and is lost"),
        (lose_one_and_keep_a_later_one, "4.036 m was answered (as [3]) and is lost"),
        (answer_another_distance, "4.036 m was answered (as [3]) and is lost"),
        (take_a_lost_one_twice, "one ride of 4.036 m was asked for, but there are [4, 5]"),
        (change_a_ride, "is lost"),
        (take_one_twice, "there are [3, 4]"),
        (take_half_a_request, "its request was never completed"),
        (take_what_nobody_asked_for, "ride 4 of 0.5 m was never asked for"),
        (forget_the_key, "under key b, which names None"),
        (never_answer, "was never answered"),
        (die_by_itself, "consumer0 ended with status 1 after 10 s; nobody had sent it"),
        (fail_on_sigterm, "it was sent SIGTERM"),
    ],
)
def test_the_judge_finds(breakage: Callable[[Evidence], None], expected: str) -> None:
    evidence = sound()
    assert check(evidence) == []
    breakage(evidence)
    assert expected in "\n".join(check(evidence))


def test_many_findings_of_one_kind_are_not_all_spelled_out() -> None:
    assert most_of(f"finding {n}" for n in range(100))[-1] == "... and 95 more of these"
