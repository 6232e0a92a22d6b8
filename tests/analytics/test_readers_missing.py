"""A run misses whoever was there when the last one completed, and every record that was sent.

Who is missed, and until when, is in `tests/services/test_readers_missing.py`.
"""

import pytest

from consumers.ratings.stars import Stars
from tests.support.attacks import PLACES, all_have_counted, by_hand, counted, standing
from tests.support.books import Books
from tests.support.completed_runs import last_run
from tests.support.entries import RATE
from tests.support.jobs import reconcile
from tests.support.world import drain
from unified_log.readers.reader import Reader

LOSE_ROWS = (
    "DELETE FROM consumer_states WHERE name = 'consumer0'",
    "DELETE FROM rating_sums WHERE name = 'ratings0'",
    "DELETE FROM checkpoints WHERE name = 'consumer1'",
    "WITH minutes AS (DELETE FROM ride_minutes) UPDATE rollup_state SET complete_to = cell_start()",
    """WITH rows AS (DELETE FROM receipts)
    UPDATE receipts_state SET inbox_to = cell_start(), complete_to = cell_start()""",
)
GONE, BEHIND = ("consumer0", "consumer1", "ratings0"), ("rollup", "receipts")


@pytest.fixture
def everybody(books: Books) -> Books:
    """All kinds of readers were there when a run completed."""
    counted(books)
    books.world.connection.execute(RATE, [1, 5])
    drain(books.world.streamer())
    Reader(books.world.log(), Stars(books.world.connect(), "ratings0")).run_once()
    all_have_counted(books)
    assert books.run().status == "agreed"
    return books


def test_who_is_missing_or_was_set_back_does_not_agree(everybody: Books) -> None:
    """Also while no new ride comes. Nothing is asked of those who are right."""
    by_hand(everybody.world, *LOSE_ROWS)
    for option in ([], ["--full"], ["--check"]):
        run = reconcile(everybody.world, *option)
        assert (run.status, run.wrong) == (1, "")
        assert all(name in run.said for name in GONE + BEHIND)
        found = last_run(everybody.world)
        assert found.status != "agreed"
        assert all(name in found.about("reader_gone") for name in GONE)
        assert all(name in found.about("reader_behind") for name in BEHIND)
    assert everybody.world.value("SELECT count(*) FROM resets") == 0


@pytest.mark.proves("records-counted")
def test_a_record_that_was_sent_and_has_no_row_is_missed(everybody: Books) -> None:
    """Of whatever kind: first a rating's. Then the oldest rides, although their receipts are there:

    a sample begins where the cell does, not at the oldest ride that is left.
    """
    before = standing(everybody)
    for loss, kind in (
        ("DELETE FROM ratings", "records_missing"),
        (f"DELETE FROM rides WHERE id <= {PLACES}", "rides_changed"),
    ):
        by_hand(everybody.world, loss)
        assert everybody.run().status == "held"
        assert kind in last_run(everybody.world).held
        assert standing(everybody) == before
