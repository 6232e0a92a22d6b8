"""Minutes that only Postgres contradicts are held, and found again until somebody has decided."""

from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from analytics.judged_minutes import _cancel
from analytics.result import Tally, WrongMinute
from tests.support.attacks import (
    BLOCK,
    DELIVERED,
    RECEIPTS_ARE_COMPLETE,
    TOTALS,
    all_have_counted,
    alter_in_file,
    by_hand,
    named_ledger,
    settled,
)
from tests.support.books import Books
from tests.support.completed_runs import REASON, last_run
from tests.support.jobs import approve
from tests.support.rollup import exact, hurry, kept, lead, send_at

MOVE_THE_NEWEST = "UPDATE rides SET created_at = {} WHERE id = (SELECT max(id) FROM rides)"
LENGTHEN_THE_NEWEST_MINUTE = """
    UPDATE ride_minutes SET distance = distance + 1
    WHERE minute = (SELECT max(minute) FROM ride_minutes)
"""

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTE = f"{AT:%Y-%m-%d %H:%M}"
LENGTHEN_THE_NEWEST_RIDE = """
    UPDATE rides SET distance = distance + 2 WHERE id = (SELECT max(id) FROM rides)
"""
SHORTEN_IT_AGAIN = LENGTHEN_THE_NEWEST_RIDE.replace("+", "-")


@pytest.mark.parametrize("to", ["created_at - interval '3 days'", "'infinity'"])
def test_a_ride_whose_time_was_moved_before_any_run_has_read_it_changes_no_minute_unless_approved(
    books: Books, to: str
) -> None:
    """The totals know of no times. The runs after find the same, as long as it is so.

    A minute that is wrong by itself waits for that, too. No minute has a ride of infinity.
    """
    settled(books)
    send_at(books.world, (f"{MINUTE}+00", 10), (f"{MINUTE[:-2]}09+00", 30))
    all_have_counted(books)
    by_hand(books.world, f"UPDATE ride_minutes SET distance = 11 WHERE minute = '{MINUTE}+00'")
    before = kept(books.world)
    by_hand(books.world, MOVE_THE_NEWEST.format(to))
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


def test_a_minute_with_a_ride_that_is_held_is_not_computed_anew(books: Books) -> None:
    """Another of its rides was altered in the warehouse alone, by as many metres."""
    for _ in range(2):
        send_at(books.world, (f"{MINUTE}+00", 10), (f"{MINUTE}+00", 20))
        books.skip_ids(BLOCK - 2)
    all_have_counted(books)
    assert books.run().agrees
    send_at(books.world, (f"{MINUTE[:-2]}07+00", 10))
    all_have_counted(books)
    before = kept(books.world)
    alter_in_file(books, 1, 1)
    by_hand(books.world, f"UPDATE rides SET distance = distance + 1 WHERE id = {BLOCK + 1}")
    result = books.run()
    assert (result.status, result.requested) == ("held", False)
    assert last_run(books.world).kinds == {"rides_changed", "warehouse_changed"}
    hurry(lead(books.world))
    assert kept(books.world) == before


@pytest.mark.parametrize("other", [f"{MINUTE[:-2]}09+00", "2026-03-02 10:09+00"])
def test_a_ride_that_was_moved_to_a_minute_that_is_not_compared_yet_changes_none(
    books: Books, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a later ride, and the rollup stands before that, as it does under traffic.

    It may be among days that are looked at apart.
    """
    monkeypatch.setattr("analytics.proofs.rollup.DAYS_AT_ONCE", 1)
    settled(books)
    send_at(books.world, (f"{MINUTE}+00", 10), (f"{MINUTE}+00", 30), (other, 20))
    all_have_counted(books)
    send_at(books.world, (other, 50))
    for name in TOTALS:
        books.caught_up(name)
    is_moved(books, f"'{other}'")


def test_nor_does_one_that_was_moved_to_a_day_with_rides_that_are_held(books: Books) -> None:
    settled(books)
    send_at(books.world, (f"{MINUTE}+00", 10), (f"{MINUTE}+00", 30))
    all_have_counted(books)
    by_hand(books.world, f"UPDATE rides SET distance = distance + 1 WHERE id = {BLOCK + 4}")
    is_moved(books, f"(SELECT created_at FROM rides WHERE id = {BLOCK + 4})")


def test_nor_does_one_that_was_moved_to_a_minute_that_is_set_aside(books: Books) -> None:
    settled(books)
    send_at(books.world, (f"{MINUTE}+00", 10), (f"{MINUTE}+00", 30))
    all_have_counted(books)
    other = f"'{MINUTE[:-2]}09+00'"
    by_hand(books.world, f"INSERT INTO set_aside_minutes VALUES ({other}, 1, 'slow', 3)")
    is_moved(books, other)


def is_moved(books: Books, to: str) -> None:
    """Fails if the ride of 30 m is taken from its minute, since it is in none now."""
    by_hand(books.world, f"UPDATE rides SET created_at = {to} WHERE distance = 30")
    before = kept(books.world)[0]
    found = books.run()
    hurry(lead(books.world))
    assert (found.status, found.requested) == ("held", False)
    assert not books.run().agrees
    assert kept(books.world)[0] == before


def test_no_minute_is_computed_anew_where_all_totals_are_off_by_the_same(books: Books) -> None:
    """Postgres and the warehouse were altered alike, and the ledger is gone."""
    settled(books)
    before = kept(books.world)
    named_ledger(books)[1].unlink()
    alter_in_file(books, BLOCK + 4, 1)
    by_hand(books.world, f"UPDATE rides SET distance = distance + 1 WHERE id = {BLOCK + 4}")
    result = books.run()
    assert (result.status, result.requested) == ("held", False)
    assert last_run(books.world).held == {"total_held", "minutes_held"}
    hurry(lead(books.world))
    assert kept(books.world) == before


def test_of_many_minutes_that_are_off_alike_not_all_sums_are_looked_at() -> None:
    """That would take minutes, or hours; and of a dozen, whatever they are, it takes no time."""

    def off(rides: int, metres: int) -> WrongMinute:
        return WrongMinute(AT, Tally(9 + rides, Decimal(9 + metres)), Tally(9, Decimal(9)), 1)

    assert _cancel([off(-1, -1)] * 20_000 + [off(1, 2)])
    assert not _cancel([off(-1, -1)] * 20_000)
    dozen = [off((-1) ** number, (-2) ** number) for number in range(12)]
    assert not _cancel([*dozen, off(3, 1)])
    assert _cancel([*dozen, off(-1, -4)])
