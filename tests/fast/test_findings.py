"""What a run finds: what an approval is for, and what becomes of each part."""

from decimal import Decimal

import pytest

from analytics import findings
from analytics.findings import PART, Finding, digest, verdicts
from analytics.result import Compared, ReceiptsVerdict, WrongRides
from analytics.rows import NAMED
from tests.support.copies import ledger_of, looks_at, rides

HELD = Finding(findings.RIDES_CHANGED, "ride 7 was changed", True, "7", 0, 9, 1)
OTHER = Finding(findings.TOTAL_HELD, "consumer0 is off by 1 m", True, "consumer0 1")
FOUND = Finding(findings.RECEIPTS_MISSING, "ride 8 has no receipt", False, "8")


def test_a_digest_is_of_what_is_held_in_any_order_and_of_nothing_else() -> None:
    held = digest([HELD, OTHER])
    assert digest([OTHER, FOUND, HELD]) == held
    assert digest([Finding(each.kind, "told otherwise", True, each.key) for each in (HELD, OTHER)])\
        == held  # fmt: skip
    assert digest([FOUND]) == digest([]) == ""


@pytest.mark.parametrize(
    "others",
    [
        [HELD],
        [OTHER],
        [HELD, Finding(OTHER.kind, OTHER.about, True, "consumer0 2")],
        [HELD, Finding(findings.MINUTES_HELD, OTHER.about, True, OTHER.key)],
        [HELD, OTHER, Finding(FOUND.kind, FOUND.about, True, FOUND.key)],
        [HELD, OTHER, OTHER],
    ],
)
def test_other_findings_have_another_digest(others: list[Finding]) -> None:
    assert digest(others) != digest([HELD, OTHER])


def test_what_is_found_of_rides_stays_the_same_while_the_log_goes_on() -> None:
    """And is another thing as soon as another ride is changed."""

    def found(taken: list[int], changed: dict[int, int], upto: int) -> str:
        mine = [changed.get(ride, metres) for ride, metres in enumerate(taken, 1)]
        [look] = looks_at(ledger_of(rides(*taken), upto), rides(*mine), rides(*taken))
        return digest([findings.of_look(findings.RIDES_CHANGED, look, held=True)])

    first = found([1, 2, 3], {2: 9}, 3)
    assert found([1, 2, 3, 4], {2: 9}, 4) == first
    assert found([1, 2, 3], {2: 8}, 3) != first
    assert found([1, 2, 3], {2: 9, 3: 9}, 3) != first


def test_receipts_that_are_missing_beside_those_that_are_named_are_another_finding() -> None:
    def key(missing: int) -> str:
        verdict = ReceiptsVerdict(missing=WrongRides(missing, tuple(range(1, NAMED + 1))))
        [found] = findings.of_proofs(verdict, None, held=True)
        return found.key

    assert key(NAMED + 1) != key(NAMED + 2)


def test_a_total_is_found_to_be_off_by_the_same_wherever_it_has_come_to() -> None:
    one, later = (
        Compared("c", position, position + Decimal("0.001"), Decimal(position), False, 5, 5)
        for position in (10, 20)
    )
    keys = {findings.of_total(each, held=True).key for each in (one, later)}
    assert len(keys) == 1
    assert findings.of_total(one._replace(rides=6), held=True).key not in keys


def test_each_kind_is_of_a_part_which_is_held_if_one_of_its_findings_is() -> None:
    kinds = {
        value for name, value in vars(findings).items() if name.isupper() and type(value) is str
    }
    assert PART.keys() == kinds
    wrong = Finding(findings.TOTAL_WRONG, "", False)
    told = verdicts([OTHER, wrong, FOUND], ["totals", "receipts", "outbox"])
    assert told == {"totals": "held", "receipts": "wrong", "outbox": "agreed"}
    assert verdicts([wrong, OTHER], []) == {"totals": "held"}
