"""What Spark's tasks are to read: ranges of rides, of the table that the driver sees."""

from functools import partial
from pathlib import Path

import pytest

from analytics import extract
from analytics.extract import CountedRange, cut_into_ranges
from analytics.from_postgres import for_executors, in_metres, this_table
from analytics.pieces import BLOCK
from tests.support.world import World

MANY = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, 25000)"
HOLE = "SELECT setval('log_position', (SELECT last_value FROM log_position) + 1000000)"
COUNT = "SELECT count(*) FROM rides WHERE id > %s AND id <= %s"


def test_ranges_are_of_whole_blocks_with_enough_rides_whatever_the_holes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "LEAST_ROWS", 50_000)
    for _ in range(3):
        world.connection.execute(MANY)
        world.connection.execute(HOLE)
    [first, *_, last] = world.take(*[1] * 10)
    ranges = cut_into_ranges(world.connection, 0, last, parallelism=100)
    assert [range_.rows for range_ in ranges] == [50_000, 25_010]
    assert [world.value(COUNT, after, upto) for after, upto, _ in ranges] == [50_000, 25_010]
    assert [range_.after for range_ in ranges] == [0, ranges[0].upto]
    assert ranges[0].upto % BLOCK == 0
    assert ranges[1].upto == last
    # A range that begins within a block has the rest of it.
    assert cut_into_ranges(world.connection, first, last, 2) == [CountedRange(first, last, 9)]
    assert cut_into_ranges(world.connection, last, last + 10_000_000, parallelism=2) == []


def test_the_rides_are_those_of_the_table_that_the_driver_sees(world: World) -> None:
    assert this_table(world.connection) == "public.rides"
    world.connection.execute('CREATE SCHEMA "Other"; CREATE TABLE "Other".rides ()', prepare=False)
    world.connection.execute('SET search_path TO "Other", public')
    assert this_table(world.connection) == '"Other".rides'


def test_a_file_that_has_other_rides_than_were_read_ends_the_task(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, _ = world.start, world.take(1, 2, 3)
    url, table = for_executors(world.postgres_url), this_table(world.connection)
    task = partial(
        extract._read, url, table, [], str(tmp_path), CountedRange(start, start + 100, 3)
    )
    files, [sums], *_ = task()
    assert (sums[2:], len(files)) == ((3, 6000), 1)
    monkeypatch.setattr(extract, "in_metres", lambda batch: in_metres(batch).slice(1))
    with pytest.raises(OSError, match="other rides than were written"):
        task()
