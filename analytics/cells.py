"""Adding up rides in Spark, exactly.

The rides are cut wherever somebody wants to know a total: at every BLOCK of ids, and at any further
marks. What comes back is a short list of cells, none of which lies across a cut, so that every
total up to a mark is a sum of whole cells.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from analytics.result import Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK = 100_000  # ids


class Cell(NamedTuple):
    """The rides of one day between two cuts, from the id `first` to the id `last`."""

    first: int
    last: int
    day: date
    rides: int
    distance: Decimal

    @property
    def tally(self) -> Tally:
        return Tally(self.rides, self.distance)


def cells(rides: "DataFrame", marks: Sequence[int] = ()) -> list[Cell]:
    """Add up `rides` (id, distance, day) between cuts, the marks among them; in order of id.

    A mark belongs to what is below it. A cell has at most BLOCK rides: its sum fits the decimal
    that Spark takes for it, 22 digits, and Spark raises an error if ever it did not.
    """
    from pyspark.sql import functions as f

    block = f.expr(f"(id - 1) div {BLOCK}")
    above = (f.when(f.col("id") > mark, 1).otherwise(0) for mark in sorted(set(marks)))
    segment = reduce(lambda one, other: one + other, above, f.lit(0))
    found = (
        rides.groupBy(block.alias("block"), segment.alias("segment"), "day")
        .agg(
            f.min("id").alias("first"),
            f.max("id").alias("last"),
            f.count("id").alias("rides"),
            f.sum("distance").alias("distance"),
        )
        .select("first", "last", "day", "rides", "distance")
    )
    return sorted(Cell(*row) for row in found.collect())


def between(cells: Iterable[Cell], after: int, upto: int) -> Tally:
    """What the cells with `after < id <= upto` come to; both ends must be cuts."""
    return total(cell.tally for cell in cells if after < cell.first and cell.last <= upto)


def total(tallies: Iterable[Tally]) -> Tally:
    """All of them together."""
    return reduce(Tally.plus, tallies, Tally())


def by_block(cells: Iterable[Cell]) -> dict[int, list[Cell]]:
    """The cells of each BLOCK of ids that has rides, in order."""
    blocks: dict[int, list[Cell]] = {}
    for cell in sorted(cells):
        blocks.setdefault((cell.first - 1) // BLOCK, []).append(cell)
    return blocks


def by_day(cells: Iterable[Cell]) -> dict[date, Tally]:
    """What each day comes to."""
    days: dict[date, Tally] = {}
    for cell in cells:
        days[cell.day] = days.get(cell.day, Tally()).plus(cell.tally)
    return days


def merged(one: dict[date, Tally], other: dict[date, Tally]) -> dict[date, Tally]:
    """Both, added up by day."""
    days = sorted({*one, *other})
    return {day: one.get(day, Tally()).plus(other.get(day, Tally())) for day in days}
