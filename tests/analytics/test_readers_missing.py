"""Whoever was there when the last run completed must be there, and no further back than then."""

import pytest

from consumers.ratings.stars import Stars
from consumers.remove import remove
from tests.support.attacks import (
    DELIVERED,
    PLACES,
    RECEIPTS_ARE_COMPLETE,
    REMOVE,
    TOTALS,
    all_have_counted,
    by_hand,
    counted,
    settled,
    standing,
)
from tests.support.books import Books
from tests.support.completed_runs import last_run
from tests.support.entries import RATE
from tests.support.jobs import Reconcile
from tests.support.rollup import hurry, lead
from tests.support.world import drain
from unified_log.readers.reader import Reader

LOSE_THE_STATE = "DELETE FROM consumer_states WHERE name = 'consumer0'"
LOSE_THE_SUM = "DELETE FROM rating_sums WHERE name = 'ratings0'"
LOSE_ALL = "DELETE FROM checkpoints"
LOSE_ONE = "DELETE FROM checkpoints WHERE name = 'consumer0'"
START_AGAIN = """
    WITH at AS (UPDATE checkpoints SET position = cell_start() WHERE name = 'consumer0')
    UPDATE consumer_states SET total_distance = 0, rides = 0 WHERE name = 'consumer0'
"""
WIPE_THE_ROLLUP = """
    WITH minutes AS (DELETE FROM ride_minutes)
    UPDATE rollup_state SET complete_to = cell_start()
"""
WIPE_THE_RECEIPTS = """
    WITH rows AS (DELETE FROM receipts)
    UPDATE receipts_state SET inbox_to = cell_start(), complete_to = cell_start()
"""
# As a removal that came before the last run, by as much.
REMOVED_BEFORE = """
    INSERT INTO removed_readers (kind, name, removed_at, position)
    SELECT 'total', 'consumer0', started_at - %s::interval, cell_start()
    FROM runs ORDER BY id DESC LIMIT 1
"""
LONG_AGO = "UPDATE removed_readers SET removed_at = removed_at - interval '1 hour'"
# What somebody does, and of whom it is told that he is gone, or behind.
MISSING: dict[str, tuple[list[str], list[str], list[str]]] = {
    "rows": (
        [LOSE_THE_STATE, LOSE_THE_SUM, WIPE_THE_ROLLUP, WIPE_THE_RECEIPTS],
        ["consumer0", "ratings0"],
        ["rollup", "receipts"],
    ),
    "one checkpoint": ([LOSE_ONE], ["consumer0"], []),
    "all checkpoints": ([LOSE_ALL], [*TOTALS, "ratings0", "rollup"], []),
    "a total at position 0": ([START_AGAIN], [], ["consumer0"]),
}


@pytest.fixture
def everybody(books: Books) -> Books:
    """All kinds of readers were there when a run completed."""
    counted(books)
    books.world.connection.execute(RATE, [1, 5])
    drain(books.world.streamer())
    read_stars(books)
    all_have_counted(books)
    assert books.run().status == "agreed"
    return books


def read_stars(books: Books) -> None:
    Reader(books.world.log(), Stars(books.world.connect(), "ratings0")).run_once()


def ride_is_counted(books: Books) -> None:
    """A new ride, by all but the rollup and the receipts."""
    books.world.send(1)
    read_stars(books)
    for name in TOTALS:
        books.caught_up(name)


@pytest.mark.proves("missed")
@pytest.mark.parametrize("missing", MISSING)
def test_who_is_missing_or_was_set_back_does_not_agree(
    everybody: Books, reconcile: Reconcile, missing: str
) -> None:
    """Also while no new ride comes. Nothing is asked of those who are right."""
    statements, gone, behind = MISSING[missing]
    by_hand(everybody.world, *statements)
    for option in ([], ["--full"], ["--check"]):
        run = reconcile(everybody.world, *option)
        assert (run.status, run.wrong) == (1, "")
        assert all(name in run.said for name in gone + behind)
        found = last_run(everybody.world)
        assert found.status != "agreed"
        assert all(name in found.about("reader_gone") for name in gone)
        assert all(name in found.about("reader_behind") for name in behind)
    assert everybody.world.value("SELECT count(*) FROM resets") == 0


def test_who_is_new_has_time_until_the_next_run(everybody: Books) -> None:
    """It begins at the first ride. Where the last run ended, everybody is by now."""
    everybody.world.consumer("new")
    assert everybody.run().status == "agreed"
    assert everybody.run().status == "wrong"
    assert "new" in last_run(everybody.world).about("reader_behind")
    everybody.caught_up("new")
    assert everybody.run().status == "agreed"


def test_who_was_removed_by_the_command_is_not_missed(everybody: Books) -> None:
    for name in ("consumer0", "ratings0"):
        everybody.world.connection.execute(REMOVE, [name])
    for full in (False, True):
        assert everybody.run(full=full).status == "agreed"
        assert last_run(everybody.world).findings == []


def test_a_removal_excuses_only_the_reader_that_was_removed(everybody: Books) -> None:
    """Not another one of the same name, which came later."""
    everybody.world.connection.execute(REMOVE, ["consumer0"])
    assert everybody.run().status == "agreed"
    everybody.caught_up("consumer0")
    assert everybody.run().status == "agreed"
    by_hand(everybody.world, LOSE_ONE, LONG_AGO)
    assert everybody.run().status == "wrong"
    assert "consumer0" in last_run(everybody.world).about("reader_gone")


@pytest.mark.parametrize(("before", "status"), [("50 seconds", "agreed"), ("70 seconds", "wrong")])
def test_a_removal_counts_although_a_run_began_before_it_was_committed(
    everybody: Books, before: str, status: str
) -> None:
    everybody.world.connection.execute(REMOVED_BEFORE, [before])
    by_hand(everybody.world, LOSE_ONE)
    assert everybody.run().status == status


def test_a_reader_that_somebody_deleted_is_missed_until_it_is_removed(everybody: Books) -> None:
    by_hand(everybody.world, LOSE_ONE)
    for _ in range(2):
        assert everybody.run().status == "wrong"
    remove(everybody.world.connect(), "total", "consumer0")
    for _ in range(2):
        assert everybody.run().status == "agreed"


def test_nobody_waits_for_the_minutes_of_a_rollup_that_was_removed(everybody: Books) -> None:
    """Once it is there again, it has time until the next run; then they must be there, too."""
    everybody.world.connection.execute(REMOVE, ["rollup"])
    for full in (False, False, True):
        ride_is_counted(everybody)
        by_hand(everybody.world, DELIVERED, RECEIPTS_ARE_COMPLETE)
        assert everybody.run(full=full).status == "agreed"
    leading = lead(everybody.world)
    assert everybody.world.value("SELECT count(*) FROM checkpoints WHERE kind = 'rollup'") == 1
    assert everybody.run().status == "agreed"
    hurry(leading)
    assert everybody.run().status == "agreed"
    by_hand(everybody.world, WIPE_THE_ROLLUP)
    assert everybody.run().status == "wrong"
    assert "the rollup's complete_to" in last_run(everybody.world).about("reader_behind")


def test_nobody_waits_for_receipts_that_were_stopped_for_good(everybody: Books) -> None:
    """Once they are delivered further than ever before, they must be there again."""
    by_hand(everybody.world, WIPE_THE_RECEIPTS)
    for _ in range(2):
        assert everybody.run().status == "wrong"
    remove(everybody.world.connect(), "receipts", "all")
    for full in (False, False, True):
        assert everybody.run(full=full).status == "agreed"
    ride_is_counted(everybody)
    hurry(lead(everybody.world))
    by_hand(everybody.world, DELIVERED, RECEIPTS_ARE_COMPLETE)
    assert everybody.run().status == "agreed"
    by_hand(everybody.world, WIPE_THE_RECEIPTS)
    assert everybody.run().status == "wrong"
    assert "receipts" in last_run(everybody.world).about("reader_behind")


def test_the_oldest_rides_are_missed_although_their_receipts_are_there(everybody: Books) -> None:
    """A sample begins where the cell does, not at the oldest ride that is left."""
    before = standing(everybody)
    by_hand(everybody.world, f"DELETE FROM rides WHERE id <= {PLACES}")
    for full in (False, True):
        assert everybody.run(full=full).status == "held"
        run = last_run(everybody.world)
        assert "rides_changed" in run.held
        assert standing(everybody) == before


@pytest.mark.proves("records-counted")
def test_a_record_that_was_sent_and_has_no_row_is_missed(everybody: Books) -> None:
    """Of whatever kind: this one is a rating's."""
    by_hand(everybody.world, "DELETE FROM ratings")
    assert everybody.run().status == "held"
    assert "records_missing" in last_run(everybody.world).held
    assert standing(everybody).asked == 0


def test_a_reader_with_a_backslash_in_its_name_is_found_again(books: Books) -> None:
    settled(books)
    books.follow(r"\u0000")
    for _ in range(2):
        assert books.run().status == "agreed"


def test_receipts_may_be_under_way_but_not_for_hours(everybody: Books) -> None:
    ride_is_counted(everybody)
    assert everybody.run().status == "agreed"
    everybody.run()
    assert "receipts" not in last_run(everybody.world).about("reader_behind")
    by_hand(everybody.world, "UPDATE runs SET started_at = started_at - interval '7 hours'")
    everybody.run()
    assert "the receipts' complete_to" in last_run(everybody.world).about("reader_behind")
