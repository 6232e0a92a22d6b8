"""The rollup is proved by Spark: a wrong minute is found, computed anew, and then right."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.result import NOTHING, RollupVerdict, WrongMinute
from tests.support.books import Books, tally
from tests.support.rollup import hurry, is_complete, lead, send_at

MINUTE = datetime(2026, 3, 1, 10, 1, tzinfo=UTC)
SURPLUS = datetime(2026, 3, 1, 11, 30, tzinfo=UTC)
OLD = datetime(2025, 1, 1, tzinfo=UTC)
RIGHT = tally(2, 3)
# What is done to a minute, and what it then has.
WRONG = {
    "a millimetre more": ("distance = distance + 0.001", tally(2, Decimal("3.001"))),
    "a millimetre less": ("distance = distance - 0.001", tally(2, Decimal("2.999"))),
    "a ride more": ("rides = rides + 1", tally(3, 3)),
    "labelled with a ride to come": ("rides = 1, upto = 1e12", tally(1, 3)),
}


def rolled_up(books: Books, *others: datetime) -> None:
    """Two rides in each of ten minutes, and in some others; the rollup is complete."""
    minutes = [*others, *(MINUTE + timedelta(minutes=number) for number in range(-1, 9))]
    rides = [(minute.isoformat(), metres) for metres in (1, 2) for minute in minutes]
    send_at(books.world, *rides)
    hurry(lead(books.world))
    assert is_complete(books.world)


def repaired(books: Books) -> RollupVerdict:
    """Let the rollup do what it was asked for, and prove it again."""
    hurry(lead(books.world))
    assert is_complete(books.world)
    verdict = books.run().rollup
    assert verdict
    return verdict


def test_a_rollup_that_is_right_is_said_to_be_right(books: Books) -> None:
    rolled_up(books)
    result = books.run()
    assert result.rollup == RollupVerdict(upto=20, minutes=10)
    assert result.agrees
    assert books.world.value("SELECT count(*) FROM recomputations") == 0


@pytest.mark.proves("minute-repaired")
@pytest.mark.parametrize("change", WRONG)
def test_a_wrong_minute_is_found_and_computed_anew(books: Books, change: str) -> None:
    rolled_up(books)
    how, kept = WRONG[change]
    books.world.connection.execute(f"UPDATE ride_minutes SET {how} WHERE minute = %s", [MINUTE])
    result = books.run()
    assert result.rollup
    assert result.rollup.wrong == [WrongMinute(MINUTE, kept, RIGHT, 2)]
    assert not result.agrees
    assert repaired(books) == RollupVerdict(upto=20, minutes=10)


def test_a_missing_minute_is_found_and_computed_anew(books: Books) -> None:
    rolled_up(books)
    books.world.connection.execute("DELETE FROM ride_minutes WHERE minute = %s", [MINUTE])
    result = books.run()
    assert result.rollup
    assert result.rollup.wrong == [WrongMinute(MINUTE, None, RIGHT, 2)]
    assert repaired(books).agrees


def put_surplus(books: Books) -> None:
    books.world.connection.execute(
        "INSERT INTO ride_minutes (minute, rides, distance, upto) VALUES (%s, 7, 7.5, 3)", [SURPLUS]
    )


def test_a_surplus_minute_is_found_and_emptied(books: Books) -> None:
    rolled_up(books)
    put_surplus(books)
    result = books.run()
    assert result.rollup
    assert result.rollup.wrong == [WrongMinute(SURPLUS, tally(7, Decimal("7.5")), NOTHING, 20)]
    assert repaired(books).agrees


def test_what_is_old_is_found_by_full_and_looked_at_again_the_next_night(books: Books) -> None:
    rolled_up(books, OLD)
    assert books.run().agrees
    change = "UPDATE ride_minutes SET distance = distance + 1 WHERE minute = %s"
    books.world.connection.execute(change, [OLD])
    put_surplus(books)
    verdict = books.run().rollup
    assert verdict == RollupVerdict(upto=22)  # no new ride: nothing to compare
    full = books.run(full=True)
    assert full.rollup
    assert [wrong.minute for wrong in full.rollup.wrong] == [OLD, SURPLUS]
    again = books.run().rollup
    assert again
    assert [wrong.minute for wrong in again.wrong] == [OLD, SURPLUS]  # nobody has repaired it
    assert repaired(books).minutes == 12


def test_a_day_that_has_rides_of_two_nights_is_compared_as_a_whole(books: Books) -> None:
    rolled_up(books)
    assert books.run().agrees
    send_at(books.world, (MINUTE.isoformat(), 4), (SURPLUS.isoformat(), 5))
    hurry(lead(books.world))
    result = books.run()
    assert (result.new.rides, result.mismatches) == (2, [])
    assert result.rollup == RollupVerdict(upto=22, minutes=11)
    change = "UPDATE ride_minutes SET distance = distance + 1"
    books.world.connection.execute(change)  # also where the second night brought no ride
    full = books.run(full=True)
    assert full.rollup
    assert len(full.rollup.wrong) == 11


def test_what_was_set_aside_is_looked_at_again_once_it_is_not(books: Books) -> None:
    rolled_up(books)
    assert books.run().agrees
    connection = books.world.connection
    connection.execute("UPDATE ride_minutes SET distance = 9 WHERE minute = %s", [MINUTE])
    assert not books.run(full=True).agrees
    connection.execute("UPDATE recomputations SET status = 'set aside', changed_at = now()")
    connection.execute(
        "INSERT INTO set_aside_minutes (minute, lowest_ride_id, reason, attempts)"
        " VALUES (%s, 2, '', 3)",
        [MINUTE],
    )
    assert books.run().rollup == RollupVerdict(upto=20, minutes=9, set_aside=1)
    connection.execute("DELETE FROM set_aside_minutes")
    again = books.run().rollup
    assert again
    assert [wrong.minute for wrong in again.wrong] == [MINUTE]


def test_check_asks_for_nothing_however_often(books: Books) -> None:
    rolled_up(books)
    books.world.connection.execute("DELETE FROM ride_minutes")
    for _ in range(2):
        result = books.run(check=True)
        assert result.rollup
        assert len(result.rollup.wrong) == 10
        assert not result.requested
    for table in ("recomputations", "reconciliations"):
        assert books.world.value(f"SELECT count(*) FROM {table}") == 0
    result = books.run()
    assert result.requested
    assert repaired(books).agrees
