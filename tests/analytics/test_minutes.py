"""Spark adds up rides by minute as pure Python does, ride by ride."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from pyspark.testing import assertDataFrameEqual

from analytics.minutes import Minute, by_minute, collected
from analytics.warehouse import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMS = "minute TIMESTAMP, rides BIGINT, distance DECIMAL(22,3), first BIGINT, last BIGINT"
START = datetime(2026, 3, 1, 23, 58, tzinfo=UTC)


class Ride(NamedTuple):
    id: int
    created_at: datetime
    distance: Decimal

    @property
    def row(self) -> tuple[object, ...]:
        return *self, self.created_at.date()


def one_by_one(rides: list[Ride]) -> dict[datetime, Minute]:
    found: dict[datetime, Minute] = {}
    for id_, created_at, distance in rides:
        minute = created_at.replace(second=0, microsecond=0)
        one = found.get(minute, Minute(0, Decimal(0), id_, id_))
        found[minute] = Minute(
            one.rides + 1, one.distance + distance, min(one.first, id_), max(one.last, id_)
        )
    return found


def test_rides_are_added_up_in_their_minutes(spark: "SparkSession") -> None:
    second = timedelta(seconds=1)
    most = Decimal("999999999.999")
    rides = [
        Ride(3, START, Decimal("0.001")),
        Ride(1, START + 59 * second, most),
        Ride(2, START + 60 * second - timedelta(microseconds=1), most),
        Ride(4, START + 120 * second, Decimal(5)),
    ]
    expected = [
        (START, 3, 2 * most + Decimal("0.001"), 1, 3),
        (START + 120 * second, 1, Decimal(5), 4, 4),
    ]
    assertDataFrameEqual(
        by_minute(spark.createDataFrame([ride.row for ride in rides], COLUMNS)),
        spark.createDataFrame(expected, SUMS),
    )


def test_random_rides_are_added_up_as_one_by_one(spark: "SparkSession") -> None:
    chance = random.Random(7)
    rides = [
        Ride(
            number,
            START + timedelta(microseconds=chance.randrange(300_000_000)),
            Decimal(chance.randrange(1, 10**12)).scaleb(-3),
        )
        for number in chance.sample(range(1, 10**6), 3000)
    ]
    minutes = by_minute(spark.createDataFrame([ride.row for ride in rides], COLUMNS))
    assert collected(minutes) == one_by_one(rides)


def test_rides_of_times_that_python_lacks_are_in_no_minute(spark: "SparkSession") -> None:
    rides = spark.sql(
        """
        SELECT id, timestamp(at) AS created_at, CAST(1 AS DECIMAL(12,3)) AS distance
        FROM VALUES (1, '-4000-01-01'), (2, '0001-01-01'), (3, '0001-01-02'),
                    (4, '9999-12-30 23:59:59'), (5, '9999-12-31'), (6, '+200000-01-01') AS t(id, at)
        """
    )
    assert sorted(minute.first for minute in collected(by_minute(rides)).values()) == [3, 4]


def test_no_rides_are_no_minutes(spark: "SparkSession") -> None:
    assert collected(by_minute(spark.createDataFrame([], COLUMNS))) == {}
