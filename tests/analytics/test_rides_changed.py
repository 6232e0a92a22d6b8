"""Rides that were changed in Postgres are held: named, and nothing is done to anybody.

The warehouse's files and the totals contradict it. Which of them is right, a person decides.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.support.attacks import (
    Taken,
    all_have_counted,
    by_hand,
    in_postgres,
    settled,
    standing,
)
from tests.support.books import Books
from tests.support.completed_runs import last_run, statuses
from tests.support.jobs import reconcile

NIGHTS = 3
PUT = "INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE"
# What somebody does, each time to rides of another block, and whose these are.
CHANGES: dict[str, list[tuple[str, set[int]]]] = {
    "its sum changes": [
        ("UPDATE rides SET distance = distance + 0.001 WHERE id = 4", {4}),
        ("DELETE FROM rides WHERE id IN (100001, 100004)", {100_001, 100_004}),
        (f"{PUT} VALUES (250000, 7)", {250_000}),
    ],
    # The number of rides and the metres of each block remain what they were.
    "its sum does not": [
        (
            "UPDATE rides SET distance = other.distance FROM rides other"
            " WHERE (rides.id, other.id) IN ((4, 7), (7, 4))",
            {4, 7},
        ),
        (
            "UPDATE rides SET created_at = created_at + interval '3 days' WHERE id = 100004",
            {100_004},
        ),
        (  # another ride under its id
            "CREATE TEMPORARY TABLE gone AS SELECT distance FROM rides WHERE id = 200004;"
            " DELETE FROM rides WHERE id = 200004;"
            f" {PUT} SELECT 200004, distance FROM gone",
            {200_004},
        ),
        ("UPDATE rides SET id = 350000 WHERE id = 300004", {300_004, 350_000}),
        (  # three changes that cancel: also the sum of id times distance remains
            "UPDATE rides SET distance = distance + CASE id WHEN 400003 THEN -2 ELSE 1 END"
            " WHERE id IN (400002, 400003, 400004)",
            {400_002, 400_003, 400_004},
        ),
    ],
}


@pytest.mark.proves("rides-held")
@pytest.mark.parametrize("change", CHANGES)
def test_rides_that_were_changed_in_postgres_are_named_and_held_and_nothing_is_repaired(
    books: Books, change: str
) -> None:
    """A full run, too, replaces nothing."""
    settled(books, blocks=6)
    right, before = in_postgres(books), standing(books)
    ids = set[int]()
    for statement, changed in CHANGES[change]:
        books.world.connection.execute(statement, prepare=False)
        ids |= changed
    for full in (False, True):
        assert books.run(full=full).status == "held"
        run = last_run(books.world)
        assert run.held & {"rides_changed", "rides_undecided"}
        assert (set(run.rides), run.differing) == (ids, len(ids))
        now = in_postgres(books)
        assert said_by(run.rides, "warehouse") == {ride: right.get(ride) for ride in ids}
        assert said_by(run.rides, "postgres") == {ride: now.get(ride) for ride in ids}
        assert standing(books) == before


def said_by(rides: dict[int, dict[str, Any]], witness: str) -> dict[int, Taken | None]:
    """What Postgres or the warehouse says of each ride."""
    said = {number: ride[witness] for number, ride in rides.items()}
    return {
        number: (datetime.fromisoformat(ride["created_at"]), Decimal(str(ride["distance"])))
        if ride
        else None
        for number, ride in said.items()
    }


def test_one_altered_ride_is_status_1_on_each_night_and_new_rides_go_on(books: Books) -> None:
    """It lies in one of many blocks. The first night reads all of them, the others some."""
    settled(books, blocks=12)
    by_hand(books.world, "UPDATE rides SET distance = 7 WHERE id = 500005")
    before, ends = standing(books), []
    for night in range(NIGHTS):
        books.world.send(1000 + night)
        all_have_counted(books)
        ends.append(reconcile(books.world, *(["--full"] if night == 0 else [])).status)
        assert set(last_run(books.world).rides) == {500_005}
    assert ends == [1] * NIGHTS
    assert statuses(books.world) == ["agreed"] + ["held"] * NIGHTS
    after = standing(books)
    assert after.asked == before.asked
    assert len(after.warehouse) == len(before.warehouse) + NIGHTS
    assert before.warehouse.items() <= after.warehouse.items()
