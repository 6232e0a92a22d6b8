"""The rollup is compared, while it goes on, with what Spark has added up: either may be wrong."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.freeze import freeze
from analytics.minutes import Minute, Minutes
from analytics.ownership import require_no_repair
from analytics.proofs.rollup import KEPT, complete_to, days_rolled_up, prove, unproved_days
from analytics.reconcile import the_only_run
from analytics.result import Mismatch, RollupVerdict, Tally
from tests.support.interrupted import interrupted
from tests.support.rollup import hurry, lead, send_at
from tests.support.world import World
from unified_log.errors import Unavailable
from unified_log.repair import repair

Proved = tuple[RollupVerdict, list[Mismatch]]
FIRST = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
ADDED_UP = """
    SELECT date_trunc('minute', created_at, 'UTC'), count(*), sum(distance), min(id), max(id)
    FROM rides WHERE id <= %s AND (created_at AT TIME ZONE 'UTC')::date = ANY(%s) GROUP BY 1
"""
PUT = """
    INSERT INTO rides (id, created_at, distance) OVERRIDING SYSTEM VALUE VALUES (%s, %s, 7)
    RETURNING id, distance
"""
LATE = f"""
    WITH ride AS ({PUT})
    INSERT INTO staged_log_records (id, type, data)
    SELECT id, 'ride.create', jsonb_build_object('id', id, 'distance', distance) FROM ride
"""
OUTSIDE = ("infinity", "4713-01-01 12:00+00 BC", "0001-01-01 12:00+00", "9999-12-31 12:00+00")


def sums(world: World, frozen: int) -> Callable[[Sequence[date]], dict[datetime, Minute]]:
    """What Spark would add up."""

    def minutes_of(days: Sequence[date]) -> dict[datetime, Minute]:
        rows = world.connection.execute(ADDED_UP, [frozen, list(days)])
        return {minute: Minute(*row) for minute, *row in rows}

    return minutes_of


def look(world: World, change: Callable[[dict[datetime, Minute]], object] = len) -> Proved:
    """Compare all that there is; `change` is made to the sums."""
    frozen = last_sent(world)

    def minutes_of(days: Sequence[date]) -> Minutes:
        minutes = sums(world, frozen)(days)
        change(minutes)
        return minutes

    complete = complete_to(world.connection)
    days = unproved_days(world.connection, 0, complete) | days_rolled_up(world.connection)
    return prove(world.connection, minutes_of, days, frozen, complete)


def twelfth(world: World) -> int:
    """The last ride of those that are rolled up."""
    return world.start + 12


def last_sent(world: World) -> int:
    return freeze(world.connection).position


@pytest.fixture
def rolled_up(world: World) -> World:
    minutes = [FIRST + timedelta(minutes=10 * number) for number in range(6)]
    send_at(world, *((f"{minute}", metres) for minute in minutes for metres in (1, 2)))
    hurry(lead(world))
    return world


def test_what_is_rolled_up_between_two_reads_is_not_seen_in_part(rolled_up: World) -> None:
    """Or a row of after would be held to the rides of before."""

    def go_on() -> None:
        send_at(rolled_up, (f"{FIRST}", 5))
        hurry(lead(rolled_up))

    frozen, last = last_sent(rolled_up), twelfth(rolled_up)
    with interrupted(rolled_up, KEPT, go_on) as connection:
        found = prove(connection, sums(rolled_up, last), [FIRST.date()], frozen, last)
    verdict, mismatches = found
    assert complete_to(rolled_up.connection) == last + 1
    assert (verdict.minutes, verdict.wrong, mismatches) == (3, [], [])


def test_what_is_rolled_up_after_the_freeze_is_not_compared(rolled_up: World) -> None:
    """Spark has not read those rides."""
    frozen = last_sent(rolled_up)
    send_at(rolled_up, (f"{FIRST}", 5))
    hurry(lead(rolled_up))
    complete = complete_to(rolled_up.connection)
    assert (frozen, complete) == (twelfth(rolled_up), twelfth(rolled_up) + 1)
    minutes_of = sums(rolled_up, frozen)
    found = prove(rolled_up.connection, minutes_of, [FIRST.date()], frozen, complete)
    assert found == (RollupVerdict(upto=frozen, minutes=2), [])


def test_where_postgres_agrees_with_the_rollup_the_warehouse_is_wrong(rolled_up: World) -> None:
    first = rolled_up.start + 1

    def lose(minutes: dict[datetime, Minute]) -> None:
        minutes[FIRST] = minutes[FIRST]._replace(rides=1, distance=Decimal(1), last=first)

    verdict, [mismatch] = look(rolled_up, lose)
    assert verdict.agrees
    sums_of = Tally(1, Decimal(1)), Tally(2, Decimal(3))
    assert mismatch == Mismatch(first - 1, first + 1, *sums_of, FIRST)


def test_a_minute_that_was_set_aside_is_counted_and_is_no_drift(rolled_up: World) -> None:
    rolled_up.connection.execute("DELETE FROM ride_minutes WHERE minute = %s", [FIRST])
    rolled_up.connection.execute(
        "INSERT INTO set_aside_minutes (minute, lowest_ride_id, reason, attempts)"
        " VALUES (%s, %s, '', 3), ('infinity', 9, '', 3)",
        [FIRST, rolled_up.start + 1],
    )
    assert look(rolled_up) == (
        RollupVerdict(upto=twelfth(rolled_up), minutes=5, set_aside=2),
        [],
    )


def test_what_is_past_complete_to_is_not_compared(rolled_up: World) -> None:
    rolled_up.connection.execute("UPDATE ride_minutes SET rides = 7")
    rolled_up.connection.execute("UPDATE rollup_state SET complete_to = cell_start() + 7")
    verdict, _ = look(rolled_up)
    assert (verdict.upto - rolled_up.start, verdict.minutes, len(verdict.wrong)) == (7, 3, 3)
    rolled_up.connection.execute("DELETE FROM rollup_state")  # it has never run
    rolled_up.connection.execute("DELETE FROM ride_minutes")
    assert look(rolled_up) == (RollupVerdict(), [])


def test_no_more_is_called_proved_than_the_days_were_chosen_for(rolled_up: World) -> None:
    """The rollup has become complete to more since; the next run looks at that."""
    frozen, seventh = last_sent(rolled_up), rolled_up.start + 7
    minutes_of = sums(rolled_up, twelfth(rolled_up))
    found = prove(rolled_up.connection, minutes_of, [FIRST.date()], frozen, complete=seventh)
    assert found == (RollupVerdict(upto=seventh, minutes=3), [])


def test_where_rides_were_repaired_since_nothing_is_said(rolled_up: World) -> None:
    """The rollup may have such a ride already; what Spark has read before has not."""
    rolled_up.connection.execute("SELECT nextval('log_position')")  # it comes after the next
    send_at(rolled_up, (f"{FIRST}", 5))
    connection, frozen = rolled_up.connection, freeze(rolled_up.connection)
    require_no_repair(connection, frozen.history)
    late = twelfth(rolled_up) + 1
    rolled_up.connection.execute(LATE, [late, FIRST])
    assert repair(rolled_up.connect())[0] == [late]
    with pytest.raises(Unavailable, match="counted meanwhile"):
        require_no_repair(connection, frozen.history)
    hurry(lead(rolled_up))
    assert look(rolled_up) == (RollupVerdict(upto=late + 1, minutes=6), [])


def test_a_day_that_python_lacks_is_left_out_although_it_has_new_rides(rolled_up: World) -> None:
    """The warehouse keeps them with the first, or the last, day that there is."""
    send_at(rolled_up, *((moment, 1) for moment in OUTSIDE[2:]))
    hurry(lead(rolled_up))
    days = [FIRST.date(), date.min, date.max]
    last = twelfth(rolled_up)
    found = prove(rolled_up.connection, sums(rolled_up, last), days, last_sent(rolled_up), last)
    verdict, mismatches = found
    assert (verdict.minutes, verdict.wrong, mismatches) == (3, [], [])


def test_a_ride_with_a_number_that_none_draws_is_in_no_minute(rolled_up: World) -> None:
    """Neither Spark nor any total counts it."""
    rolled_up.connection.execute(PUT, [-3, FIRST])
    frozen, last, first = last_sent(rolled_up), twelfth(rolled_up), rolled_up.start + 1
    without = sums(rolled_up, last)([FIRST.date()])
    without[FIRST] = Minute(2, Decimal(3), first, first + 1)
    compute_all(rolled_up)
    found = prove(rolled_up.connection, lambda _: without, [FIRST.date()], frozen, last)
    assert found == (RollupVerdict(upto=last, minutes=3), [])
    rolled_up.connection.execute("UPDATE ride_minutes SET rides = 3 WHERE minute = %s", [FIRST])
    found = prove(rolled_up.connection, lambda _: without, [FIRST.date()], frozen, last)
    verdict, mismatches = found
    assert [wrong.lowest_ride_id for wrong in verdict.wrong] == [first]
    assert mismatches == []


def compute_all(world: World) -> None:
    world.connection.execute("UPDATE rollup_state SET complete_to = cell_start(), generation = ''")
    hurry(lead(world))


ZONES = {  # and when a day has an hour twice, or a year that Python lacks
    "Europe/Berlin": datetime(2025, 10, 26, 0, 30, tzinfo=UTC),
    "Asia/Tokyo": datetime(9999, 12, 30, 23, 30, tzinfo=UTC),
}


@pytest.mark.parametrize("zone", ZONES)
def test_it_does_not_matter_in_which_time_zone_the_server_is(world: World, zone: str) -> None:
    hours = [ZONES[zone] + timedelta(hours=number) for number in range(-1, 1)]
    send_at(world, *((f"{hour}", metres) for hour in hours for metres in (1, 2)))
    hurry(lead(world))
    minutes = {
        hour: Minute(2, Decimal(3), world.start + 2 * n + 1, world.start + 2 * n + 2)
        for n, hour in enumerate(hours)
    }
    last = world.start + 4
    world.connection.execute(f"ALTER DATABASE {world.stream} SET timezone = '{zone}'")
    with the_only_run(world.postgres_url) as connection:
        days = days_rolled_up(connection)
        assert unproved_days(connection, 0, last) == days
        found = prove(connection, lambda _days: minutes, days, last_sent(world), last)
    assert found == (RollupVerdict(upto=last, minutes=2), [])


def test_days_are_utc_and_those_that_python_lacks_are_left_out(rolled_up: World) -> None:
    rolled_up.connection.execute("SET timezone = 'Asia/Tokyo'")
    for moment in OUTSIDE:
        send_at(rolled_up, (moment, 1))
    hurry(lead(rolled_up))
    two = {FIRST.date(), FIRST.date() + timedelta(1)}
    connection, start = rolled_up.connection, rolled_up.start
    assert unproved_days(connection, start, start + 99) == days_rolled_up(connection) == two
    assert unproved_days(connection, start + 6, start + 99) == {max(two)}
    assert unproved_days(connection, start, start + 6) == {min(two)}
    verdict, mismatches = look(rolled_up)
    assert (verdict.minutes, verdict.wrong, mismatches) == (6, [], [])
