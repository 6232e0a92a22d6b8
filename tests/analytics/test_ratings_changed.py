"""Ratings that were changed in Postgres are held: the ledger and a consumer contradict it."""

import pytest

from analytics import rotation
from consumers.ratings.stars import Stars
from tests.support.attacks import BLOCK, by_hand, named_ledger
from tests.support.books import Books
from tests.support.completed_runs import REASON, last_run
from tests.support.entries import RATE
from tests.support.jobs import approve
from tests.support.world import drain
from unified_log.readers.reader import Reader

ALTER_A_STAR = "UPDATE ratings SET stars = 1 WHERE stars = 5"
A_STAR_TOO_MANY = "UPDATE rating_sums SET stars = stars + 1 WHERE name = 'ratings1'"
# From one block to another: there are as many as before.
MOVE_A_STAR = """
    UPDATE ratings SET stars = CASE stars WHEN 5 THEN 4 ELSE 3 END WHERE stars IN (5, 2)
"""
ADD_A_STAR = "INSERT INTO ratings (id, ride_id, stars) OVERRIDING SYSTEM VALUE VALUES (%s, %s, 2)"
ASKED_TO_RECOUNT = "SELECT count(*) FROM checkpoints WHERE recount"


def rate(books: Books, *stars: int) -> None:
    """Send a ride for each, and then its rating."""
    for ride, each in zip(books.world.send(*stars), stars, strict=True):
        books.world.connection.execute(RATE, [ride, each])
    drain(books.world.streamer())


def consumer(books: Books, name: str = "ratings0") -> "Reader[Stars]":
    return Reader(books.world.log(), Stars(books.world.connect(), name))


def counted(books: Books, *, block_is_full: bool) -> "Reader[Stars]":
    """A consumer that has counted ratings, with which a run agrees; a ride came after them."""
    rate(books, 5, 4, 3)
    if block_is_full:
        books.skip_ids(BLOCK)
        rate(books, 2)
    books.world.send(1)
    reader = consumer(books)
    reader.run_once()
    assert books.run().agrees
    return reader


def test_an_approval_is_for_all_ratings_that_were_changed_wherever_chance_has_a_run_look(
    books: Books,
) -> None:
    for _ in range(20):
        rate(books, 5)
        books.skip_ids(BLOCK)
    consumer(books).run_once()
    assert books.run().agrees
    by_hand(books.world, ALTER_A_STAR)
    assert books.run().status == "held"
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run(chance=2).approval


def test_ratings_that_were_altered_before_any_run_agree_once_they_are_put_back(
    books: Books,
) -> None:
    rate(books, 5, 4)
    consumer(books).run_once()
    for stars, status in ((1, "held"), (5, "agreed")):
        by_hand(books.world, f"UPDATE ratings SET stars = {stars} WHERE stars <> 4")
        assert books.run().status == status


def sums(reader: "Reader[Stars]") -> tuple[int, int]:
    reader.run_once()
    return reader.handler.ratings, reader.handler.stars


@pytest.mark.parametrize(
    ("change", "off", "block_is_full"),
    [(ALTER_A_STAR, -4, False), (ALTER_A_STAR, -4, True), (MOVE_A_STAR, 0, True)],
    ids=["newest", "full", "moved"],
)
def test_a_star_that_was_altered_in_postgres_resets_nobody_until_that_is_approved(
    books: Books, change: str, off: int, *, block_is_full: bool
) -> None:
    """The ledger has these sums from then on. Who is wrong by itself waits for that, too."""
    reader = counted(books, block_is_full=block_is_full)
    other = consumer(books, "ratings1")
    ratings, stars = sums(reader)
    assert sums(other) == (ratings, stars)
    by_hand(books.world, change, A_STAR_TOO_MANY)
    for full in (True, False):
        assert books.run(full=full).status == "held"
        assert last_run(books.world).held == {"ratings_changed", "ratings_held"}
        assert books.world.value(ASKED_TO_RECOUNT) == 0
        assert sums(reader) == (ratings, stars)
    number = last_run(books.world).id
    refused = approve(books.world, number, "--put-back")
    assert (refused.status, refused.said) == (2, "")
    assert refused.wrong.startswith(f"not printed: run {number} holds no rides; nobody has kept")
    assert approve(books.world, number, *REASON).status == 0
    assert books.run().approval
    assert sums(reader) == sums(other) == (ratings, stars + off)
    assert books.run(full=block_is_full).status == "agreed"


def test_statements_that_put_rides_back_say_that_none_is_for_ratings(books: Books) -> None:
    counted(books, block_is_full=False)
    by_hand(books.world, ALTER_A_STAR, "UPDATE rides SET distance = distance + 1 WHERE id = 1")
    assert books.run().status == "held"
    printed = approve(books.world, last_run(books.world).id, "--put-back")
    assert (printed.status, printed.wrong, printed.said.count("UPDATE")) == (0, "", 1)
    assert printed.said.splitlines()[-1].startswith("-- the ratings 1 to ")


def test_a_star_that_a_run_has_found_altered_is_found_by_the_next_one(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its block would not be read again yet."""
    monkeypatch.setattr(rotation, "AT_RANDOM", 0)
    reader = counted(books, block_is_full=True)
    books.skip_ids(BLOCK)
    rate(books, 1)
    sums(reader)
    assert books.run().agrees
    by_hand(books.world, "UPDATE ratings SET stars = 3 WHERE stars = 2")
    for full in (True, False, False):
        assert books.run(full=full).status == "held"
        assert last_run(books.world).held == {"ratings_changed"}


def test_without_the_ledger_no_run_remembers_ratings(books: Books) -> None:
    """There is no warehouse of them."""
    reader = counted(books, block_is_full=False)
    before = sums(reader)
    named_ledger(books)[1].unlink()
    by_hand(books.world, ALTER_A_STAR)
    assert books.run().status == "held"
    assert last_run(books.world).held == {"ratings_held"}
    assert sums(reader) == before


def test_new_ratings_that_nobody_has_counted_so_are_not_in_the_ledger(books: Books) -> None:
    """Once they are put back, all agrees."""
    reader = counted(books, block_is_full=False)
    rate(books, 5)
    sums(reader)
    for stars, status in ((1, "held"), (5, "agreed")):
        change = f"UPDATE ratings SET stars = {stars} WHERE id = (SELECT max(id) FROM ratings)"
        by_hand(books.world, change)
        assert books.run().status == status


def test_a_rating_that_was_added_where_no_block_has_any_is_found_and_counted(books: Books) -> None:
    """Else who recounts it would be wrong for ever."""
    reader = counted(books, block_is_full=True)
    [ride] = books.world.send(1)
    books.skip_ids(3 * BLOCK)
    rate(books, 1)
    ratings, stars = sums(reader)
    assert books.run().agrees
    books.world.connection.execute(ADD_A_STAR, [2 * BLOCK + 7, ride])
    assert books.run().status == "held"
    assert last_run(books.world).held == {"records_missing", "ratings_changed"}
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run().approval
    assert sums(reader) == (ratings + 1, stars + 2)
    assert books.run().agrees
