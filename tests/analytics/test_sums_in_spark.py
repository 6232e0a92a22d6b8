"""Spark adds up rides as pure Python does, ride by ride; and exchanges no more than the sums."""

import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from pyspark.errors import ArithmeticException

from analytics.ledger import Ledger
from analytics.minutes import Minute, by_minute, collected
from analytics.pieces import BLOCK, Piece, by_piece, pieces
from analytics.warehouse import COLUMNS, Warehouse
from tests.support.warehouse import DAYS, night

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MOST = Decimal("999999999.999")
MICROSECOND = timedelta(microseconds=1)
EXCHANGE = re.compile(r"^\W*(?:Shuffle|Broadcast)?Exchange\b", re.MULTILINE)
IN_PYTHON = ("Python", "Pandas", "InArrow", "ExistingRDD", "BatchScan")

Sum = Callable[["DataFrame"], "DataFrame"]
SUMS: dict[str, tuple[Sum, set[str]]] = {
    "pieces": (lambda rides: by_piece(rides, [3, 30_000]), {"id", "distance"}),
    "minutes": (by_minute, {"id", "created_at", "distance"}),
}


class Ride(NamedTuple):
    id: int
    created_at: datetime
    distance: Decimal


def in_spark(spark: "SparkSession", *rides: Ride) -> "DataFrame":
    rows = [(*ride, ride.created_at.date()) for ride in rides]
    return spark.createDataFrame(rows, COLUMNS)


def rides_of_three_blocks() -> list[Ride]:
    """At the ends of a block, in the first and last moment of a minute, as long as can be; and any.

    Their days differ, and their minutes are not in the order of their ids.
    """
    chance = random.Random(7)
    edges = [
        Ride(BLOCK, NOON, MOST),
        Ride(BLOCK + 1, NOON + timedelta(1) - MICROSECOND, MOST),
        Ride(BLOCK + 2, NOON + timedelta(1), MOST),
    ]
    others = chance.sample([*range(1, BLOCK), *range(BLOCK + 3, 3 * BLOCK)], 3000)
    return edges + [
        Ride(
            number,
            NOON + timedelta(microseconds=chance.randrange(300_000_000)),
            Decimal(chance.randrange(1, 10**12)).scaleb(-3),
        )
        for number in others
    ]


@pytest.mark.parametrize("most", [5, 700])
def test_rides_are_added_up_between_cuts_as_one_by_one(spark: "SparkSession", most: int) -> None:
    """The ride at a mark is below it. Each ride that a total holds out has two marks."""
    rides = rides_of_three_blocks()
    marks = [*(ride.id for ride in rides[:most]), 2 * BLOCK - 1]
    expected: dict[tuple[int, int], Piece] = {}
    for id_, _, distance in rides:
        place = (id_ - 1) // BLOCK, sum(id_ > mark for mark in marks)
        one = expected.get(place, Piece(id_, id_, 0, Decimal(0)))
        expected[place] = Piece(
            min(one.first, id_), max(one.last, id_), one.rides + 1, one.distance + distance
        )
    assert pieces(in_spark(spark, *rides), marks) == sorted(expected.values())


def test_rides_are_added_up_in_their_minutes_as_one_by_one(spark: "SparkSession") -> None:
    expected: dict[datetime, Minute] = {}
    for id_, created_at, distance in (rides := rides_of_three_blocks()):
        minute = created_at.replace(second=0, microsecond=0)
        one = expected.get(minute, Minute(0, Decimal(0), id_, id_))
        expected[minute] = Minute(
            one.rides + 1, one.distance + distance, min(one.first, id_), max(one.last, id_)
        )
    assert collected(by_minute(in_spark(spark, *rides))) == expected
    assert collected(by_minute(in_spark(spark))) == {}


def test_rides_of_times_that_python_lacks_are_in_no_minute(spark: "SparkSession") -> None:
    rides = spark.sql(
        """
        SELECT id, timestamp(at) AS created_at, CAST(1 AS DECIMAL(12,3)) AS distance
        FROM VALUES (1, '-4000-01-01'), (2, '0001-01-01'), (3, '0001-01-02'),
                    (4, '9999-12-30 23:59:59'), (5, '9999-12-31'), (6, '+200000-01-01') AS t(id, at)
        """
    )
    assert sorted(minute.first for minute in collected(by_minute(rides)).values()) == [3, 4]


def test_an_overflow_is_an_error_and_never_a_null(spark: "SparkSession") -> None:
    huge = spark.range(1, 9).selectExpr("id", "CAST(9e37BD AS DECIMAL(38,0)) AS distance")
    with pytest.raises(ArithmeticException):
        pieces(huge)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Some days' rides, in a file for each day."""
    rides = (range(200 * number + 1, 200 * number + 201) for number in range(len(DAYS)))
    night(tmp_path, Ledger(), *zip(DAYS, rides, strict=True))
    return Warehouse(tmp_path)


@pytest.mark.parametrize("name", SUMS)
def test_rides_are_added_up_before_the_one_exchange_and_never_in_python(
    spark: "SparkSession", warehouse: Warehouse, name: str
) -> None:
    add_up, columns = SUMS[name]
    sums = add_up(warehouse.read(spark, warehouse.table.files()))
    sums.collect()
    executed = str(sums._jdf.queryExecution().executedPlan().toString())
    final = executed.partition("Initial Plan")[0]
    assert len(EXCHANGE.findall(final)) == 1, executed
    before = final[EXCHANGE.search(final).end() :]  # type: ignore[union-attr]
    assert "partial_sum" in before, executed
    assert not any(word in executed for word in IN_PYTHON), executed
    [read] = {*re.findall(r"ReadSchema: struct<([^>]*)>", executed)}
    assert {*re.findall(r"(\w+):", read)} == columns
