"""Spark adds up rides between cuts as pure Python does, ride by ride."""

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from pyspark.testing import assertDataFrameEqual

from analytics.cells import BLOCK, Cell, by_cell, cells
from analytics.warehouse import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.books import Books

SUMS = "first BIGINT, last BIGINT, rides BIGINT, distance DECIMAL(22,3)"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TODAY, TOMORROW = NOON.date(), NOON.date() + timedelta(1)
MOST = Decimal("999999999.999")

Ride = tuple[int, datetime, Decimal, date]


def test_rides_are_added_up_between_cuts(spark: "SparkSession") -> None:
    rides = [
        (1, NOON, Decimal("0.001"), TODAY),
        (7, NOON, MOST, TODAY),  # the ride at a mark is below it
        (8, NOON, MOST, TODAY),
        (9, NOON, MOST, TOMORROW),  # whatever its day
        (BLOCK, NOON, MOST, TODAY),
        (BLOCK + 1, NOON, Decimal(5), TODAY),
    ]
    expected = [
        Cell(1, 7, 2, MOST + Decimal("0.001")),
        Cell(8, BLOCK, 3, 3 * MOST),
        Cell(BLOCK + 1, BLOCK + 1, 1, Decimal(5)),
    ]
    assertDataFrameEqual(
        by_cell(spark.createDataFrame(rides, COLUMNS), [7]), spark.createDataFrame(expected, SUMS)
    )


def test_random_rides_are_added_up_as_one_by_one(spark: "SparkSession") -> None:
    chance = random.Random(11)
    ids = chance.sample(range(1, 3 * BLOCK), 3000)
    marks = [*chance.sample(ids, 5), BLOCK, 2 * BLOCK - 1]
    rides = [
        (
            number,
            NOON,
            Decimal(chance.randrange(1, 10**12)).scaleb(-3),
            TODAY + timedelta(chance.randrange(3)),
        )
        for number in ids
    ]
    assert cells(spark.createDataFrame(rides, COLUMNS), marks) == one_by_one(rides, marks)


def one_by_one(rides: list[Ride], marks: list[int]) -> list[Cell]:
    found: dict[tuple[int, int], Cell] = {}
    for id_, _, distance, _ in rides:
        place = (id_ - 1) // BLOCK, sum(id_ > mark for mark in set(marks))
        one = found.get(place, Cell(id_, id_, 0, Decimal(0)))
        found[place] = Cell(
            min(one.first, id_), max(one.last, id_), one.rides + 1, one.distance + distance
        )
    return sorted(found.values())


def test_there_are_as_many_cells_as_cuts_however_many_rides(books: "Books") -> None:
    books.add_many(1000)
    books.run()
    warehouse = books.warehouse
    assert len(cells(warehouse.read(books.spark, warehouse.table.files()), [10])) == 2
    books.add_many(BLOCK - 1000)
    books.run()
    warehouse = books.warehouse
    assert len(cells(warehouse.read(books.spark, warehouse.table.files()), [10])) == 2
