"""What Spark's tasks are to read: ranges of rides, of the table that the driver sees."""

from analytics.extract import cut_into_ranges, this_table
from tests.support.world import World

MANY = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, 25000)"
HOLE = "SELECT setval('log_position', (SELECT last_value FROM log_position) + 1000000)"


def test_ranges_hold_equal_numbers_of_rides_whatever_the_holes(world: World) -> None:
    for _ in range(3):
        world.connection.execute(MANY)
        world.connection.execute(HOLE)
    [last, *_] = world.take(*[1] * 10)
    last += 9
    ranges = cut_into_ranges(world.connection, 0, last, parallelism=100)
    counts = [
        world.value("SELECT count(*) FROM rides WHERE id > %s AND id <= %s", after, upto)
        for after, upto, _ in ranges
    ]
    assert counts == [range_.rides for range_ in ranges] == [25_000] * 3 + [10]
    assert cut_into_ranges(world.connection, last, last + 10_000_000, parallelism=2) == []


def test_the_rides_are_those_of_the_table_that_the_driver_sees(world: World) -> None:
    assert this_table(world.connection) == "public.rides"
    world.connection.execute('CREATE SCHEMA "Other"; CREATE TABLE "Other".rides ()', prepare=False)
    world.connection.execute('SET search_path TO "Other", public')
    assert this_table(world.connection) == '"Other".rides'
