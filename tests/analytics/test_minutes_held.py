"""Minutes that only Postgres contradicts are held, and found again until somebody has decided."""

from contextlib import AbstractContextManager, nullcontext

from tests.support.attacks import (
    DELIVERED,
    RECEIPTS_ARE_COMPLETE,
    all_have_counted,
    by_hand,
    settled,
)
from tests.support.books import Books
from tests.support.completed_runs import REASON, last_run
from tests.support.jobs import approve
from tests.support.rollup import exact, hurry, kept, lead

MOVE_THE_NEWEST = """
    UPDATE rides SET created_at = created_at - interval '3 days'
    WHERE id = (SELECT max(id) FROM rides)
"""
LENGTHEN_THE_NEWEST_MINUTE = """
    UPDATE ride_minutes SET distance = distance + 1
    WHERE minute = (SELECT max(minute) FROM ride_minutes)
"""

LENGTHEN_THE_NEWEST_RIDE = """
    UPDATE rides SET distance = distance + 2 WHERE id = (SELECT max(id) FROM rides)
"""
SHORTEN_IT_AGAIN = LENGTHEN_THE_NEWEST_RIDE.replace("+", "-")


def test_a_ride_whose_time_was_moved_before_any_run_has_read_it_changes_no_minute_unless_approved(
    books: Books,
) -> None:
    """The totals know of no times. The runs after find the same, as long as it is so."""
    settled(books)
    books.world.send(10, 20, 30)
    all_have_counted(books)
    before = kept(books.world)
    by_hand(books.world, MOVE_THE_NEWEST)
    for _ in range(2):
        result = books.run()
        assert (result.status, result.requested) == ("held", False)
        assert last_run(books.world).held == {"minutes_held"}
        hurry(lead(books.world))
        assert kept(books.world) == before
    approve(books.world, last_run(books.world).id, *REASON)
    approved = books.run()
    assert (approved.status, approved.requested) == ("wrong", True)
    hurry(lead(books.world))
    assert exact(books.world)


def test_minutes_that_were_held_are_found_again_and_computed_once_a_total_confirms_them(
    books: Books,
) -> None:
    """Also one that stands a ride behind the rollup when all are frozen, and then catches up."""
    books.world.send(1, 2, 3)
    books.claim("consumer0", 0)
    hurry(lead(books.world))
    by_hand(books.world, DELIVERED, RECEIPTS_ARE_COMPLETE, LENGTHEN_THE_NEWEST_MINUTE)
    for _ in range(2):  # no total has counted these rides yet
        assert not books.run().requested
        assert last_run(books.world).held == {"minutes_held"}
    books.caught_up()
    confirmed = books.run()
    assert (confirmed.status, confirmed.requested) == ("wrong", True)
    hurry(lead(books.world))
    assert exact(books.world)
    assert books.run().agrees
    books.world.send(7)
    hurry(lead(books.world))
    by_hand(books.world, DELIVERED, RECEIPTS_ARE_COMPLETE, LENGTHEN_THE_NEWEST_MINUTE)

    def shown(stage: str) -> AbstractContextManager[object]:
        if stage == "Extracting new rides":
            books.caught_up()
        return nullcontext()

    found = books.job(shown).run_once()
    assert (found.status, found.requested) == ("wrong", True)
    assert last_run(books.world).kinds == {"minutes_wrong"}
    hurry(lead(books.world))
    assert exact(books.world)
    assert books.run().agrees


def test_a_wrong_minute_of_rides_that_are_held_is_found_once_they_were_put_back(
    books: Books,
) -> None:
    """The rollup was proved before; that rides are held says of which days to look at it again."""
    books.world.send(1, 2, 3)
    all_have_counted(books)
    by_hand(books.world, DELIVERED, RECEIPTS_ARE_COMPLETE)
    assert books.run().agrees
    by_hand(books.world, LENGTHEN_THE_NEWEST_MINUTE, LENGTHEN_THE_NEWEST_RIDE)
    held = books.run()
    assert (held.status, held.requested) == ("held", False)
    assert "minutes_held" not in last_run(books.world).held
    by_hand(books.world, SHORTEN_IT_AGAIN)
    found = books.run()
    assert (found.status, found.requested) == ("wrong", True)
    hurry(lead(books.world))
    assert exact(books.world)
    assert books.run().agrees
