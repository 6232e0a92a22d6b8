"""What the judge of the books finds in the log: each mistake made on purpose."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from lab.chaos.books.judge import check
from lab.chaos.evidence import Evidence
from lab.chaos.observer import Told
from rocket_rides.log import Record
from tests.support.evidence import LATER, THEIRS, TWO, sound


def see_nothing(evidence: Evidence) -> None:
    evidence.told.clear()


def break_the_chain(evidence: Evidence) -> None:
    evidence.told.append(Told(Record(3, 0, TWO, b"second"), LATER))


def forge_an_entry(evidence: Evidence) -> None:
    evidence.told.append(Told(Record(2, 1, Decimal("5.000"), b"second"), LATER))


def believe_a_stranger(evidence: Evidence) -> None:
    evidence.final.terms[THEIRS.term] = (1, 3)


@pytest.mark.parametrize(
    ("breakage", "expected"),
    [
        (see_nothing, "the onlooker saw no true entry"),
        (break_the_chain, "prev of ride 3 is 0, not 1"),
        (forge_an_entry, "ride 2 of 5.000 m, which does not exist"),
        (believe_a_stranger, "ride 2 of 7.000 m, which does not exist"),
    ],
)
def test_the_judge_finds_in_the_log(breakage: Callable[[Evidence], None], expected: str) -> None:
    evidence = sound()
    assert check(evidence) == []
    breakage(evidence)
    assert expected in "\n".join(check(evidence))
