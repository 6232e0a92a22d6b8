"""Which blocks are compared with Postgres once more: each in its turn, and some by chance."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from analytics.ledger import Block, Ledger
from analytics.pieces import BLOCK, Piece
from analytics.rotation import AT_RANDOM, MOST, chosen, elapsed, in_rotation

START = datetime(2026, 11, 21, 3, tzinfo=UTC)
DAY = timedelta(days=1)


def ledger(*rides: int) -> Ledger:
    """Blocks of so many rides, which nobody has looked at since they were read."""
    pieces = [
        Piece(number * BLOCK + 1, (number + 1) * BLOCK, of, Decimal(1))
        for number, of in enumerate(rides)
    ]
    return Ledger().extended(len(rides) * BLOCK, pieces, {}, START)


def looked_at(known: Ledger, blocks: list[Block], now: datetime) -> Ledger:
    return known.with_blocks(msgspec.structs.replace(each, looked_at=now) for each in blocks)


class Blind(random.Random):
    """By chance it draws the newest block alone, at which every run looks anyway."""

    def sample(self, population: Any, k: int, **_: Any) -> Any:
        assert k == min(AT_RANDOM, len(population))
        return population[-1:]


@pytest.mark.proves("rotation")
@pytest.mark.parametrize("days", [12, 30, 90])
@pytest.mark.parametrize("rides", [[100] * 40, [1, 1000, 3] * 13, [1000] + [1] * 39])
def test_within_reread_days_each_block_is_looked_at(days: int, rides: list[int]) -> None:
    """Every night, and whatever the blocks' sizes; chance helps nobody here."""
    known = ledger(*rides)
    for night in range(1, days + 1):
        blocks = chosen(known, [], [], 1.0, days, Blind())
        assert blocks == sorted(blocks, key=lambda block: block.upto)
        known = looked_at(known, blocks, START + night * DAY)
    assert known.oldest_look
    assert known.oldest_look > START


def test_blocks_of_which_something_was_found_take_nobody_elses_turn() -> None:
    """While they are held, nothing says that they were looked at."""
    known = ledger(*[100] * 40)
    findings: list[dict[str, Any]] = [{"after": 0, "upto": 3 * BLOCK}]
    for night in range(1, 31):
        blocks = chosen(known, [], findings, 1.0, 30, Blind())
        assert blocks[:3] == known.blocks[:3]
        known = looked_at(known, blocks[3:], START + night * DAY)
    assert all(block.looked_at > START for block in known.blocks[3:])


def test_a_clock_that_was_ahead_takes_no_block_out_of_the_rotation() -> None:
    known = ledger(*[100] * 40)
    known = looked_at(known, known.blocks[:30], START + 365 * DAY).looked_at_by(START)
    for night in range(1, 31):
        due = chosen(known, [], [], 1.0, 30, Blind())
        known = looked_at(known, due, START + night * DAY)
    assert all(START < block.looked_at <= START + 30 * DAY for block in known.blocks)


@pytest.mark.parametrize("share", [1 / MOST, 0.5, 30.0])
def test_at_most_a_tenth_of_all_rides_is_due_however_long_the_last_run_is_ago(
    share: float,
) -> None:
    due = in_rotation(ledger(*[100] * 40), share)
    assert sum(block.rides for block in due) == 40 * 100 // MOST


def test_who_was_not_looked_at_for_longest_comes_first_and_one_at_least() -> None:
    known = ledger(*[100] * 10)
    known = looked_at(known, known.blocks[:3], START + DAY)
    assert in_rotation(known, 0.0) == [known.blocks[3]]


def test_the_newest_block_those_of_totals_and_those_of_findings_are_always_compared() -> None:
    known = looked_at(ledger(*[100] * 100), [], START)
    known = looked_at(known, known.blocks[1:], START + DAY)
    findings: list[dict[str, Any]] = [
        {"after": 20 * BLOCK, "upto": 20 * BLOCK + 5},
        {"after": 30 * BLOCK, "upto": 32 * BLOCK},
        {"kind": "total_held"},
    ]
    marks = [0, 50 * BLOCK, 50 * BLOCK + 1, 200 * BLOCK]
    blocks = chosen(known, marks, findings, 0.0, 30, Blind())
    assert [block.after // BLOCK for block in blocks] == [0, 20, 30, 31, 49, 50, 99]


def test_some_are_drawn_by_chance_so_that_nobody_knows_which() -> None:
    known = ledger(*[100] * 1000)
    drawn = [
        {block.after for block in chosen(known, [], [], 0.0, 30, random.Random(seed))}
        for seed in (1, 2)
    ]
    assert all(len(each) == AT_RANDOM + 2 for each in drawn)  # the newest, and one in rotation
    assert drawn[0] != drawn[1]


def test_nothing_is_compared_before_there_is_anything() -> None:
    assert chosen(Ledger(), [1], [], 1.0, 30, random.Random(1)) == []


def test_days_are_counted_since_the_last_run() -> None:
    assert elapsed(START, START + 36 * timedelta(hours=1)) == 1.5
    assert elapsed(START, START - DAY) == 0  # the clock was set back
    assert elapsed(None, START) == 1
