"""The figures of the last weeks, as Spark finds them, are those that pure Python finds."""

import random
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING

from pyspark.testing import assertDataFrameEqual

from analytics.figures import PERCENTILES, WEEKS, figures, last_weeks, weekly
from analytics.warehouse import COLUMNS
from tests.support.books import Books, tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MONDAY = date(2026, 3, 2)
START = datetime(2026, 3, 1, tzinfo=UTC)  # a Sunday
WEEK = (
    "monday DATE, rides BIGINT, distance DECIMAL(22,3), p10 DECIMAL(12,3), p50 DECIMAL(12,3),"
    " p90 DECIMAL(12,3), p99 DECIMAL(12,3), longest DECIMAL(12,3)"
)
Row = tuple[int, datetime, Decimal, date]


def ride(number: int, at: datetime, distance: Decimal | int) -> Row:
    return number, at, Decimal(distance), at.date()


def frame(spark: "SparkSession", rides: list[Row]) -> "DataFrame":
    return spark.createDataFrame(rides, COLUMNS)


def oracle(rides: list[Row]) -> list[tuple[object, ...]]:
    """Sort each week, and count."""
    weeks: dict[date, list[Decimal]] = defaultdict(list)
    for _, _, distance, day in rides:
        weeks[day - timedelta(day.weekday())].append(distance)
    found: list[tuple[object, ...]] = []
    for monday, distances in sorted(weeks.items()):
        distances.sort()
        ranks = (ceil(Decimal(percent) * len(distances) / 100) for percent in PERCENTILES)
        percentiles = (distances[rank - 1] for rank in ranks)
        found.append((monday, len(distances), sum(distances), *percentiles, distances[-1]))
    return found


def test_a_week_begins_on_monday_and_ends_on_sunday(spark: "SparkSession") -> None:
    rides = [ride(number, START + timedelta(number), 5) for number in (0, 1, 7, 8)]
    found = weekly(frame(spark, rides)).orderBy("monday").select("monday", "rides").collect()
    mondays = [MONDAY - timedelta(7), MONDAY, MONDAY + timedelta(7)]
    assert found == [*zip(mondays, (1, 2, 1), strict=True)]


def test_the_percentiles_of_a_hundred_rides_are_what_anyone_would_say(
    spark: "SparkSession",
) -> None:
    rides = [ride(number, START + timedelta(1), number) for number in range(100, 0, -1)]
    expected = [(MONDAY, 100, Decimal(5050), *map(Decimal, (*PERCENTILES, 100)))]
    assertDataFrameEqual(
        weekly(frame(spark, rides)), spark.createDataFrame(expected, WEEK), ignoreNullable=True
    )


def test_random_weeks_are_as_pure_python_finds_them(spark: "SparkSession") -> None:
    chance = random.Random(3)
    rides = [
        ride(
            number,
            START + timedelta(seconds=chance.randrange(10 * 24 * 3600)),
            Decimal(chance.choice((chance.randrange(1, 50), chance.randrange(1, 10**12)))) / 1000,
        )
        for number in range(1, 1500)
    ]
    assertDataFrameEqual(
        weekly(frame(spark, rides)),
        spark.createDataFrame(oracle(rides), WEEK),
        ignoreNullable=True,
    )


def test_the_last_weeks_end_with_the_last_ride() -> None:
    days = [MONDAY - timedelta(back) for back in range(-6, 7 * WEEKS)]
    kept = last_weeks(days)
    assert kept[0] == MONDAY - timedelta(7 * (WEEKS - 1))
    assert kept == sorted(kept)
    assert kept[-1] == MONDAY + timedelta(6)
    assert last_weeks([]) == []
    assert last_weeks([date(1, 1, 1)]) == [date(1, 1, 1)]
    assert last_weeks([*days, date.max]) == kept  # a ride of no time at all hides no other


def test_a_run_with_a_page_describes_what_it_has_and_what_is_new(books: Books) -> None:
    books.add_many(3, at="timestamptz '2026-03-02 10:00:30+00'")
    books.run()
    books.add_many(2, at="timestamptz '2026-03-02 10:00:50+00'")
    books.add_many(1, at="timestamptz '2026-03-02 23:59:59+00'")
    books.add_many(1, at="timestamptz '2025-01-01 00:00:00+00'")  # too long ago
    assert books.run(check=True).figures is None
    for check in (True, False):
        found = books.job(check=check).run_once(check=check, describe=True).figures
        assert found
        ten = datetime(2026, 3, 2, 10, tzinfo=UTC)
        assert found.hours == {
            ten: tally(5, Decimal("0.014")),
            ten.replace(hour=23): tally(1, Decimal("0.002")),
        }
        assert found.busiest_minute == (ten, tally(5, Decimal("0.014")))
        [week] = found.weeks
        assert (week.monday, week.rides, week.distance) == (MONDAY, 6, Decimal("0.016"))
        assert (week.p10, week.p50, week.longest) == tuple(
            Decimal(distance).scaleb(-3) for distance in (2, 2, 4)
        )


def test_no_rides_have_no_figures(books: Books) -> None:
    found = books.job().run_once(describe=True).figures
    assert found
    assert (found.hours, found.weeks, found.busiest_minute) == ({}, [], None)
    assert figures(books.spark.createDataFrame([], COLUMNS)) == found
