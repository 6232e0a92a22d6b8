"""Rides that the warehouse has not got yet, or no longer: what Postgres says of them is one voice.

Where they are altered or deleted before a run has read them, only the totals and the minutes know.
"""

import shutil
from collections.abc import Callable

import pytest

from analytics.steps import RunStep
from tests.support.attacks import (
    REMOVE,
    TOTALS,
    all_have_counted,
    alter_in_file,
    by_hand,
    counted,
    in_postgres,
    named_ledger,
    settled,
    standing,
    totals_now,
)
from tests.support.books import MILLIMETRE, Books
from tests.support.completed_runs import REASON, last_run
from tests.support.held_out import hold_out
from tests.support.jobs import approve
from unified_log.faults import InjectedCrash, crash_at

ALTER = "UPDATE rides SET distance = 1 WHERE id = {}"
RECOUNT = "UPDATE checkpoints SET recount = {} WHERE kind = 'total'"
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


def test_new_rides_that_no_total_has_counted_so_are_no_witnesses_once_they_are_put_back(
    books: Books,
) -> None:
    """Or once that is approved: then the totals count them so."""
    settled(books)
    [ride] = books.world.send(5)
    all_have_counted(books)
    change = "UPDATE rides SET distance = {} WHERE id = {}"
    by_hand(books.world, change.format(6, ride))
    for options in NIGHTS:
        assert books.run(**options).status == "held"
        assert "total_held" in last_run(books.world).held
    by_hand(books.world, change.format(5, ride))
    assert books.run().agrees
    [ride] = books.world.send(5)
    all_have_counted(books)
    by_hand(books.world, change.format(6, ride))
    assert books.run().status == "held"
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run().resets == [*TOTALS]


def test_nor_are_those_that_one_total_contradicts_and_the_other_has_not_counted(
    books: Books,
) -> None:
    """It holds them out, or stands before them. Put back, all agrees."""
    settled(books)
    [ride] = books.world.send(5)
    all_have_counted(books)
    hold_out(books.world, "consumer0", ride)
    is_not_taken(books, ride)
    books.world.send(5)
    all_have_counted(books)
    [ride] = books.world.send(5)
    books.caught_up("consumer1")
    is_not_taken(books, ride)


def is_not_taken(books: Books, ride: int) -> None:
    """Fails unless the warehouse has nothing of it while it is another than a total has counted."""
    change = "UPDATE rides SET distance = {} WHERE id = {}"
    by_hand(books.world, change.format(6, ride))
    for options in NIGHTS:
        result = books.run(**options)
        assert (result.status, result.published) == ("held", False)
        assert "total_held" in last_run(books.world).held
    by_hand(books.world, change.format(5, ride))
    all_have_counted(books)
    assert books.run().agrees


def test_who_is_wrong_alone_keeps_no_ride_out_that_the_other_total_has_counted(
    books: Books,
) -> None:
    """Nor if that one holds out an old ride: then it is no witness for a reset, though."""
    settled(books)
    [ride] = books.world.send(5)
    all_have_counted(books)
    books.tamper("consumer0", MILLIMETRE)
    result = books.run()
    assert (result.published, result.resets) == (True, ["consumer0"])
    books.caught_up()
    hold_out(books.world, "consumer1", ride)
    books.world.send(6)
    all_have_counted(books)
    books.tamper("consumer0", MILLIMETRE)
    result = books.run()
    assert (result.status, result.published) == ("held", True)


def test_no_run_remembers_rides_that_the_warehouse_has_lost(books: Books) -> None:
    """Its folder comes from a backup, and only Postgres says what was sent since.

    Nor once a run has copied that, even if it has died before it could say so. While the total
    recounts, nobody contradicts what is copied.
    """
    settled(books)
    by_hand(books.world, REMOVE.replace("%s", "'consumer1'"))
    shutil.copytree(books.on_disk, books.world.folder / "backup")
    [ride] = books.world.send(5)
    all_have_counted(books, "consumer0")
    assert books.run().agrees
    shutil.rmtree(books.on_disk)
    shutil.move(books.world.folder / "backup", books.on_disk)
    by_hand(books.world, ALTER.format(ride), RECOUNT.format("true"))
    with pytest.raises(InjectedCrash), crash_at(RunStep.BEFORE_COMMIT):
        books.run()
    by_hand(books.world, RECOUNT.format("false"))
    nothing_is_asked_for(books, {"total_held"})


def test_what_a_run_has_seen_that_died_before_it_published_is_no_witness(books: Books) -> None:
    """Nor once another run has copied these rides from Postgres, which held something else.

    Nobody contradicts them then: the total recounts.
    """
    settled(books)
    by_hand(books.world, REMOVE.replace("%s", "'consumer1'"))
    [ride] = books.world.send(5)
    all_have_counted(books, "consumer0")
    with pytest.raises(InjectedCrash), crash_at(RunStep.AFTER_LEDGER):
        books.run()
    alter_in_file(books, 100_004, 2)
    lengthen = "UPDATE rides SET distance = distance {} 1 WHERE id = 100004"
    by_hand(books.world, ALTER.format(ride), lengthen.format("+"), RECOUNT.format("true"))
    assert books.run().published
    assert last_run(books.world).held == {"rides_undecided"}
    by_hand(books.world, lengthen.format("-"), RECOUNT.format("false"))
    assert books.run().resets == []
    assert last_run(books.world).held == {"total_held", "minutes_held"}


@pytest.mark.parametrize("before", [settled, counted], ids=["lost", "not there yet"])
def test_no_warehouse_is_built_of_rides_that_all_contradict(
    books: Books, before: Callable[[Books], None]
) -> None:
    """It would be a witness of them. Put back, all agrees."""
    before(books)
    totals, right = totals_now(books), in_postgres(books)[100_004][1]
    shutil.rmtree(books.on_disk, ignore_errors=True)
    by_hand(books.world, ALTER.format(100_004))
    for options in NIGHTS:
        result = books.run(**options)
        assert (result.status, result.published) == ("held", False)
        assert "total_held" in last_run(books.world).held
        assert totals_now(books) == totals
    by_hand(books.world, f"UPDATE rides SET distance = {right} WHERE id = 100004")
    assert books.run().agrees


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


def test_what_is_held_stays_so_without_the_ledger(books: Books) -> None:
    """A metre was moved from a fresh ride to an old one: the totals fit that."""
    settled(books)
    [ride] = books.world.send(5)
    all_have_counted(books)
    by_hand(
        books.world,
        "UPDATE rides SET distance = distance + 1 WHERE id = 100004",
        f"UPDATE rides SET distance = distance - 1 WHERE id = {ride}",
    )
    before = standing(books)
    assert books.run().status == "held"
    named_ledger(books)[1].unlink()
    nothing_is_asked_for(books, {"rides_undecided"})
    assert standing(books).warehouse[100_004] == before.warehouse[100_004]
