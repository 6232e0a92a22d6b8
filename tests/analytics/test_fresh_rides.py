"""Rides that the warehouse has not got yet, or no longer: what Postgres says of them is one voice.

Where they are altered or deleted before a run has read them, only the totals and the minutes know.
"""

import shutil

from tests.support.attacks import (
    all_have_counted,
    by_hand,
    settled,
    standing,
    totals_now,
)
from tests.support.books import Books
from tests.support.completed_runs import last_run

ALTER = "UPDATE rides SET distance = 1 WHERE id = {}"
NIGHTS: tuple[dict[str, bool], ...] = ({"full": True}, {})


def nothing_is_asked_for(books: Books, kinds: set[str]) -> None:
    """Fails unless each run holds these kinds, and changes no total and no minute."""
    before = standing(books)
    for options in NIGHTS:
        result = books.run(**options)
        assert (result.status, result.resets) == ("held", [])
        assert last_run(books.world).held >= kinds
        assert standing(books)[1:] == before[1:]


def test_a_ride_that_is_changed_before_any_run_has_read_it_resets_nobody(books: Books) -> None:
    """Nor does the next run take what this one has copied from Postgres for another witness."""
    settled(books)
    ride = books.world.send(5, 6, 7)[1]
    all_have_counted(books)
    by_hand(books.world, ALTER.format(ride))
    nothing_is_asked_for(books, {"total_held"})


def test_a_reset_takes_in_no_ride_that_nobody_confirms(books: Books) -> None:
    """What was changed cancels where the other total stands; a reset would lead beyond that."""
    settled(books)
    rides = books.world.send(5)
    all_have_counted(books)
    rides += books.world.send(6)
    books.caught_up("consumer1")
    rides += books.world.send(7)
    for ride, metres in zip(rides, (6, 5, 8), strict=True):
        by_hand(books.world, f"UPDATE rides SET distance = {metres} WHERE id = {ride}")
    nothing_is_asked_for(books, {"total_held"})


def test_a_warehouse_that_is_rebuilt_from_postgres_is_no_witness_of_it(books: Books) -> None:
    settled(books)
    totals = standing(books)[1:]
    shutil.rmtree(books.on_disk)
    by_hand(books.world, ALTER.format(100_004))
    for options in NIGHTS:
        assert books.run(**options).status == "held"
        assert "total_held" in last_run(books.world).held
        assert standing(books)[1:] == totals


def test_where_its_log_is_broken_the_ledger_beside_it_still_says_what_the_rides_were(
    books: Books,
) -> None:
    """So the totals are right, and Postgres was changed: on what day, a digest does not tell."""
    settled(books)
    totals = totals_now(books)
    newest = max((books.rides_on_disk / "_delta_log").glob("*.json"))
    newest.write_text("{")
    by_hand(books.world, ALTER.format(100_004))
    for options in NIGHTS:
        assert books.run(**options).status == "held"
        assert last_run(books.world).held - {"minutes_held"} == {"rides_changed"}
        assert totals_now(books) == totals
