"""The rollup is proved by Spark: a wrong minute is found, computed anew, and then right."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.result import NOTHING, RollupVerdict, Tally, WrongMinute
from tests.support.books import Books, tally
from tests.support.rollup import hurry, is_complete, lead, send_at

MINUTE = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTES = [MINUTE + timedelta(minutes=number) for number in range(10)]
SURPLUS = datetime(2026, 3, 1, 11, 30, tzinfo=UTC)
OLD = datetime(2025, 1, 1, tzinfo=UTC)
CHANGE = "UPDATE ride_minutes SET {} WHERE minute = %s"
# What is done to a minute, and what it then has. Nothing cancels.
WRONG = {
    "a millimetre more": ("distance = distance + 0.001", tally(2, Decimal("3.001"))),
    "two millimetres less": ("distance = distance - 0.002", tally(2, Decimal("2.998"))),
    "two rides more": ("rides = rides + 2", tally(4, 3)),
    "labelled with a ride to come": ("rides = 1, upto = 1e12", tally(1, 3)),
}


@pytest.fixture
def rolled_up(books: Books) -> Books:
    """Two rides in each of ten minutes; the rollup is complete."""
    rides = [(minute.isoformat(), metres) for metres in (1, 2) for minute in MINUTES]
    send_at(books.world, *rides)
    hurry(lead(books.world))
    assert is_complete(books.world)
    return books


def proved(books: Books, *, full: bool = False) -> RollupVerdict:
    verdict = books.run(full=full).rollup
    assert verdict
    return verdict


def repaired(books: Books) -> RollupVerdict:
    """Let the rollup do what it was asked for, and prove it again."""
    hurry(lead(books.world))
    assert is_complete(books.world)
    return proved(books)


def minutes(verdict: RollupVerdict) -> list[datetime]:
    return [wrong.minute for wrong in verdict.wrong]


def put_surplus(books: Books) -> None:
    books.world.connection.execute(
        "INSERT INTO ride_minutes (minute, rides, distance, upto) VALUES (%s, 7, 7.5, 3)", [SURPLUS]
    )


@pytest.mark.proves("minute-repaired")
def test_a_wrong_minute_is_found_and_computed_anew(rolled_up: Books) -> None:
    """Also one that is missing, and one that has no ride."""
    connection = rolled_up.world.connection
    expected, right = list[WrongMinute](), tally(2, 3)
    for number, (how, has) in enumerate(WRONG.values()):
        connection.execute(CHANGE.format(how), [MINUTES[number]])
        expected.append(WrongMinute(MINUTES[number], has, right, number + 1))
    connection.execute("DELETE FROM ride_minutes WHERE minute = %s", [MINUTES[-1]])
    put_surplus(rolled_up)
    expected.append(WrongMinute(MINUTES[-1], None, right, 10))
    expected.append(WrongMinute(SURPLUS, Tally(7, Decimal("7.5")), NOTHING, 20))
    result = rolled_up.run()
    assert result.rollup
    assert result.rollup.wrong == expected
    assert not result.agrees
    assert result.requested
    assert repaired(rolled_up) == RollupVerdict(upto=20, minutes=11)  # the surplus one is empty


def test_what_is_old_is_found_by_full_and_looked_at_again_the_next_night(rolled_up: Books) -> None:
    send_at(rolled_up.world, (OLD.isoformat(), 1))
    assert repaired(rolled_up) == RollupVerdict(upto=21, minutes=11)
    assert rolled_up.world.value("SELECT count(*) FROM recomputations") == 0
    rolled_up.world.connection.execute(CHANGE.format("distance = distance + 1"), [OLD])
    put_surplus(rolled_up)
    assert proved(rolled_up) == RollupVerdict(upto=21)  # no new ride: nothing to compare
    assert minutes(proved(rolled_up, full=True)) == [OLD, SURPLUS]
    assert minutes(proved(rolled_up)) == [OLD, SURPLUS]  # nobody has repaired it
    assert repaired(rolled_up) == RollupVerdict(upto=21, minutes=12)


def test_a_day_that_has_rides_of_two_nights_is_compared_as_a_whole(rolled_up: Books) -> None:
    """What was set aside is looked at again once it is not."""
    assert rolled_up.run().agrees
    send_at(rolled_up.world, (MINUTES[1].isoformat(), 4), (SURPLUS.isoformat(), 5))
    hurry(lead(rolled_up.world))
    result = rolled_up.run()
    assert (result.new.rides, result.mismatches) == (2, [])
    assert result.rollup == RollupVerdict(upto=22, minutes=11)
    connection = rolled_up.world.connection
    connection.execute(CHANGE.format("distance = 9"), [MINUTE])
    assert minutes(proved(rolled_up, full=True)) == [MINUTE]
    connection.execute("UPDATE recomputations SET status = 'set aside', changed_at = now()")
    connection.execute(
        "INSERT INTO set_aside_minutes (minute, lowest_ride_id, reason, attempts)"
        " VALUES (%s, 1, '', 3)",
        [MINUTE],
    )
    assert proved(rolled_up) == RollupVerdict(upto=22, minutes=10, set_aside=1)
    connection.execute("DELETE FROM set_aside_minutes")
    assert minutes(proved(rolled_up)) == [MINUTE]


def test_old_minutes_that_only_full_has_found_are_held_until_somebody_decides(
    rolled_up: Books,
) -> None:
    """One has what the other lacks: perhaps a ride was moved in Postgres."""
    assert rolled_up.run().agrees
    for change, minute in (("distance + 1", MINUTES[0]), ("distance - 1", MINUTES[1])):
        statement = CHANGE.format(f"distance = {change}")
        rolled_up.world.connection.execute(statement, [minute])
    for full in (True, False, False):
        result = rolled_up.run(full=full)
        assert (result.status, result.requested) == ("held", False)
