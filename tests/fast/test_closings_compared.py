"""What is closed, beside the ledger and the hashes: what differs is found, and nothing else."""

import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from analytics import closings
from analytics.balances import (
    AGREES,
    ALTERED,
    DIFFERS,
    MOST,
    NOT_NOW,
    WAITS,
    Balances,
    number_in,
)
from analytics.closings import Row
from analytics.findings import CLOSING_CHANGED, CLOSING_WRONG
from analytics.ledger import Closing
from analytics.look import Look
from tests.support.copies import Ride, ledger_of, looks_at, rides

RIDES = [*rides(1, 2, 3), *rides(4, 5, after=100_000), *rides(6, after=200_000)]
LEDGER = ledger_of(RIDES, 200_001)
AT = datetime(2026, 11, 21, tzinfo=UTC)
POSITIONS = (2, 100_000, 100_001, 200_001)


def cut(position: int, of: list[Ride]) -> Look:
    """The look at the block that a closing cuts."""
    after = closings.cut(position).after
    within = [ride for ride in of if after < ride.id <= position]
    if not within:
        empty = looks_at(ledger_of(rides(1), position), [], [])[0]
        return empty._replace(after=after, known=position)
    return looks_at(ledger_of(within, position), within, within)[0]._replace(known=position)


def closed(number: int, position: int, of: list[Ride] = RIDES, **changes: Any) -> Row:
    """As it is made of these rides, after one whose hash is that of the number before."""
    look, ledger = cut(position, of), ledger_of(of, max(ride.id for ride in of))
    balance = closings.balance(ledger, position, look.of_postgres, look.postgres)
    closing = Closing(number, position, *balance.tally, balance.digest, AT, f"hash {number}", False)
    before = f"hash {number - 1}" if number > 1 else ""
    closing = msgspec.structs.replace(closing, **changes)
    return Row(closing, 1, "somebody", before, True, None, None, None)


def compared(rows: list[Row], known: list[Closing] | None = None, **given: object) -> Balances:
    balances = Balances(rows, [row.closing for row in rows] if known is None else known)
    balances.cuts = {row.closing.position: cut(row.closing.position, RIDES) for row in rows}
    return balances


def outcome(
    balances: Balances, held: list[Look] | None = None, *, approved: bool = False
) -> tuple[list[str], list[str]]:
    told, found = balances.compared(LEDGER, held or [], approved=approved)
    return [each.outcome for each in told], [each.about for each in found]


def test_each_closing_that_is_the_sum_of_the_rides_agrees() -> None:
    rows = [closed(number, position) for number, position in enumerate(POSITIONS, 1)]
    assert outcome(compared(rows)) == ([AGREES] * 4, [])
    assert [row.closing.rides for row in rows] == [2, 3, 4, 6]
    assert rows[1].closing.distance == 6
    assert len({row.closing.digest for row in rows}) == 4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rides": 3}, "closing 1 says 3 rides, 3.000 m up to position 2, and there are 2 rides"),
        ({"distance": Decimal("3.001")}, "closing 1 says 2 rides, 3.001 m up to position 2"),
        ({"digest": "0"}, "closing 1 says other rides up to position 2, with the same sum"),
    ],
)
def test_one_that_says_something_else_is_held(changes: dict[str, Any], said: str) -> None:
    outcomes, [about] = outcome(compared([closed(1, 2, **changes), closed(2, 100_001)]))
    assert outcomes == [DIFFERS, AGREES]
    assert about.startswith(said)


def test_one_whose_rides_were_swapped_differs_in_its_digest_alone() -> None:
    other = [*rides(2, 1, 3), *RIDES[3:]]
    for position in POSITIONS:
        outcomes, _ = outcome(compared([closed(1, position, other)]))
        assert outcomes == [DIFFERS]


def test_one_past_the_last_record_is_held() -> None:
    row = closed(1, 200_001)
    row = row._replace(closing=msgspec.structs.replace(row.closing, position=200_002))
    assert outcome(compared([row])) == (
        [DIFFERS],
        ["closing 1 lies past position 200001, the last"],
    )


def test_those_above_held_rides_wait_for_them() -> None:
    rows = [closed(1, 2), closed(2, 100_001)]
    held = looks_at(LEDGER, RIDES, RIDES)[1:2]
    assert outcome(compared(rows), held) == ([AGREES, WAITS], [])


ROWS = [closed(1, 2), closed(2, 100_001), closed(3, 200_001)]
REOPENED = closed(3, 200_001, reopened=True)
OTHER = ROWS[1].closing
BROKEN = [
    ROWS[0],
    ROWS[1]._replace(closing=msgspec.structs.replace(OTHER, rides=7), has_its_hash=False),
    ROWS[2],
]


@pytest.mark.parametrize(
    ("rows", "known", "outcomes", "about", "may_be_approved"),
    [
        (BROKEN, ROWS, 1, "2 was altered", False),
        ([ROWS[0], ROWS[1]._replace(previous="another"), ROWS[2]], [], 1, "2 does not", False),
        ([ROWS[0], ROWS[2]], [], 1, "3 does not follow", False),
        ([ROWS[0], closed(2, 100_001, hash="another")], ROWS[:2], 1, "2 is another one", True),
        (ROWS[:2], ROWS, None, "3 is gone", True),
        (ROWS, [*ROWS[:2], REOPENED], 2, "3 was reopened, and says so no longer", True),
    ],
)
def test_a_row_that_is_not_what_it_was_is_held(
    rows: list[Row], known: list[Row], outcomes: int | None, about: str, *, may_be_approved: bool
) -> None:
    """No approval makes a row what it does not say itself."""
    balances = compared(rows, [row.closing for row in known])
    told, [said] = outcome(balances)
    assert said.startswith(f"closing {about}")
    assert outcome(balances, approved=True)[1] == ([] if may_be_approved else [said])
    [finding] = balances.compared(LEDGER, [], approved=False)[1]
    assert finding.kind == (CLOSING_CHANGED if may_be_approved else CLOSING_WRONG)
    expected = [AGREES] * len(rows)
    if outcomes is not None:
        expected[outcomes] = ALTERED
    assert told == expected


def test_nobody_misses_anything_of_one_that_is_reopened() -> None:
    altered = REOPENED._replace(has_its_hash=False, previous="another")
    assert outcome(compared([*ROWS[:2], altered], [])) == ([AGREES] * 2, [])


def test_one_that_was_altered_and_is_given_up_is_not_held_any_more() -> None:
    """Not even where its hash was altered, too; but once it says so no longer, it is."""
    known = [row.closing for row in ROWS]
    given_up = closed(3, 200_001, hash="another", reopened=True)
    balances = compared([*ROWS[:2], given_up], known)
    assert outcome(balances) == ([AGREES] * 2, [])
    again = compared(
        [*ROWS[:2], closed(3, 200_001, hash="another")], balances.carried(approved=False)
    )
    assert outcome(again)[1] == ["closing 3 is another one than the last run has seen"]


def test_an_approval_is_for_what_a_closing_was_altered_to() -> None:
    known = [row.closing for row in ROWS]
    keys = set()
    for other in ("one", "two"):
        balances = compared([*ROWS[:2], closed(3, 200_001, hash=other)], known)
        [finding] = balances.compared(LEDGER, [], approved=False)[1]
        keys.add(finding.key)
        assert number_in(finding.key) == 3
    assert len(keys) == 2


def test_the_newest_is_the_one_with_the_highest_position() -> None:
    """Totals begin there. By hand, somebody may insert one that is below it."""
    rows = [closed(1, 200_001), *(closed(number, 2) for number in range(2, 21))]
    assert closings.newest(rows) == rows[0].closing
    assert compared(rows).chosen(200_001, [], random.Random(1))[-1] == rows[0].closing


def test_no_approval_puts_a_row_that_was_altered_into_the_ledger() -> None:
    known = [row.closing for row in ROWS]
    assert compared(BROKEN, known).carried(approved=True) == known


def test_the_ledger_carries_each_as_it_was_first_seen() -> None:
    """But for whether it is reopened. After an approval, it is what Postgres says."""
    other = closed(2, 100_001, hash="another")
    balances = compared([ROWS[0], other, REOPENED], [row.closing for row in ROWS])
    assert balances.carried(approved=False) == [each.closing for each in (*ROWS[:2], REOPENED)]
    assert balances.carried(approved=True) == [each.closing for each in (ROWS[0], other, REOPENED)]
    gone = compared(ROWS[:2], [row.closing for row in ROWS])
    assert gone.carried(approved=False) == [each.closing for each in ROWS]
    assert outcome(gone, approved=True) == ([AGREES] * 2, [])


def test_a_run_compares_the_newest_some_others_and_what_the_last_one_has_found() -> None:
    balances = compared([closed(number, 2) for number in range(1, 21)])
    wrong = {"kind": "closing_wrong", "key": "3 says something else"}
    for found in ([], [wrong]):
        some = [each.id for each in balances.chosen(200_001, found, random.Random(3))]
        assert some == sorted(some)
        assert some[-1] == 20
        assert len({*some} - {3}) <= MOST
        assert (3 in some) == bool(found)
    assert balances.chosen(1, [], random.Random(1)) == []
    balances.cuts = {}
    assert outcome(balances)[0] == [NOT_NOW] * 20


def test_the_ledger_does_not_carry_one_of_which_something_was_found() -> None:
    balances = compared([ROWS[0], closed(2, 100_001, rides=7)], [])
    assert outcome(balances)[0] == [AGREES, DIFFERS]
    assert balances.carried(approved=False) == [ROWS[0].closing]
