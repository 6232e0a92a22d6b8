"""The accounts of the drill of cells can fail: each breakage of sound books is told."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from lab.cells.books import Books, check
from lab.cells.clients import Look
from lab.chaos.books.clients import undone
from lab.chaos.evidence import Answer, Ask, FinalState, Restore
from rocket_rides.cells import CELL_SIZE

FIRST, KEYLESS, GONE = Decimal("1.009"), Decimal("2.018"), Decimal("3.027")
REFUSED, KEPT = Decimal("4.036"), Decimal("7.063")
TWICE = "was asked for, but there are"
IN_1 = CELL_SIZE + 1


def answered(ride: int, distance: Decimal, at: float, key: str | None = None) -> Ask:
    answer = Answer(ride, distance, at, at + 0.1)
    return Ask(distance, key, whole=True, asked_at=at, answers=[answer])


def sound() -> Books:
    """The key of cell 0's ride moved to cell 1, which a restore has cost a ride.

    Cell 0 has one that came after that: no restore of its own explains what it lacks.
    """
    moved, rides = answered(1, FIRST, 50, "a"), {0: {1: FIRST, 3: KEPT}, 1: {IN_1: KEYLESS}}
    asks = [moved, answered(IN_1, KEYLESS, 60), answered(IN_1 + 1, GONE, 105)]
    asks.append(answered(3, KEPT, 106))
    return Books(
        [*asks, Ask(REFUSED, whole=True)],
        {n: FinalState(taken, {}, {"a": 1}, {}, {}) for n, taken in rides.items()},
        [Restore(began=100, killed=110, cell=1)],
        [Look(moved, 1, FIRST)],
        {REFUSED},
    )


def lose_one(books: Books) -> None:
    del books.finals[0].rides[1]


def put_one_into_the_other_cell(books: Books) -> None:
    books.finals[1].rides[1] = books.finals[0].rides.pop(1)


def lose_one_in_the_other_cell(books: Books) -> None:
    books.asks.append(answered(2, Decimal("5.045"), 105))


def take_one_in_both_cells(books: Books) -> None:
    books.finals[1].rides[IN_1 + 2] = FIRST
    books.finals[1].keys["a"] = IN_1 + 2


def take_one_without_a_key_twice(books: Books) -> None:
    books.finals[0].rides[2] = KEYLESS


def take_what_was_refused(books: Books) -> None:
    books.finals[0].rides[2] = REFUSED


def find_nothing(books: Books) -> None:
    books.looks.append(Look(books.asks[0], 1, None))


def leave_one_unanswered(books: Books) -> None:
    books.asks.append(Ask(Decimal("6.054"), "b", whole=True))


@pytest.mark.parametrize(
    ("breakage", "found"),
    [
        (lose_one, "a ride of 1.009 m was answered (as [1]) and is lost"),
        (put_one_into_the_other_cell, "ride 1 is in cell 1"),
        (lose_one_in_the_other_cell, "a ride of 5.045 m was answered (as [2]) and is lost"),
        (take_one_in_both_cells, f"one ride of 1.009 m {TWICE} [1, {IN_1 + 2}]"),
        (take_one_in_both_cells, f"key a names ride 1 in one cell, and {IN_1 + 2} in another"),
        (take_one_without_a_key_twice, f"one ride of 2.018 m {TWICE} [2, {IN_1}]"),
        (take_what_was_refused, "ride 2 was taken, and its client was told that it was not"),
        (find_nothing, "ride 1 is of 1.009 m, and a client found none"),
        (leave_one_unanswered, "the ride of 6.054 m (key b) was never answered"),
    ],
)
def test_what_the_cells_lose_or_take_twice_is_found(
    breakage: Callable[[Books], None], found: str
) -> None:
    books = sound()
    assert check(books) == []
    assert undone(books.evidence) == 1
    breakage(books)
    assert found in check(books)
