"""Ratings that were changed in Postgres are held: the ledger and a consumer contradict it."""

import pytest

from consumers.ratings.stars import Stars
from tests.support.attacks import BLOCK, by_hand
from tests.support.books import Books
from tests.support.completed_runs import REASON, last_run
from tests.support.entries import RATE
from tests.support.jobs import approve
from tests.support.world import drain
from unified_log.readers.reader import Reader

ALTER_A_STAR = "UPDATE ratings SET stars = 1 WHERE stars = 5"
ASKED_TO_RECOUNT = "SELECT count(*) FROM checkpoints WHERE recount"


def rate(books: Books, *stars: int) -> None:
    """Send a ride for each, and then its rating."""
    for ride, each in zip(books.world.send(*stars), stars, strict=True):
        books.world.connection.execute(RATE, [ride, each])
    drain(books.world.streamer())


def consumer(books: Books, name: str = "ratings0") -> "Reader[Stars]":
    return Reader(books.world.log(), Stars(books.world.connect(), name))


def counted(books: Books, *, block_is_full: bool) -> "Reader[Stars]":
    """A consumer that has counted ratings, with which a run agrees."""
    rate(books, 5, 4, 3)
    if block_is_full:
        books.skip_ids(BLOCK)
        rate(books, 2)
    reader = consumer(books)
    reader.run_once()
    assert books.run().agrees
    return reader


def sums(reader: "Reader[Stars]") -> tuple[int, int]:
    reader.run_once()
    return reader.handler.ratings, reader.handler.stars


@pytest.mark.parametrize("block_is_full", [False, True], ids=["newest", "full"])
def test_a_star_that_was_altered_in_postgres_resets_nobody_until_that_is_approved(
    books: Books, *, block_is_full: bool
) -> None:
    """The ledger has these sums from then on."""
    reader = counted(books, block_is_full=block_is_full)
    ratings, stars = sums(reader)
    by_hand(books.world, ALTER_A_STAR)
    for full in (True, False):
        assert books.run(full=full).status == "held"
        assert last_run(books.world).held == {"ratings_changed"}
        assert books.world.value(ASKED_TO_RECOUNT) == 0
        assert sums(reader) == (ratings, stars)
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run().approval
    assert sums(reader) == (ratings, stars - 4)
    assert books.run(full=block_is_full).status == "agreed"


def test_a_consumer_that_stands_below_a_changed_block_says_nothing_of_it(books: Books) -> None:
    """Up to where it stands, the table is right in any case."""
    reader = counted(books, block_is_full=True)
    before = sums(reader)
    by_hand(books.world, ALTER_A_STAR)
    consumer(books, "new")
    assert books.run().status == "held"
    assert last_run(books.world).held == {"ratings_changed"}
    assert sums(reader) == before
