"""Adding up rides by minute in Spark, exactly: the rollup is compared with that."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from analytics.result import Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The times that Python has, in any time zone. Rides of other times are in no minute here.
FIRST, END = date(1, 1, 2), date(9999, 12, 31)


class Minute(NamedTuple):
    """The rides of one minute: how many, their metres, and the first and the last of their ids."""

    rides: int
    distance: Decimal
    first: int
    last: int

    @property
    def tally(self) -> Tally:
        return Tally(self.rides, self.distance)


Minutes = Mapping[datetime, Minute]


def by_minute(rides: "DataFrame") -> "DataFrame":
    """Add up `rides` (id, created_at, distance): minute, rides, distance, first, last.

    A sum has up to 22 digits: room for ten thousand million rides in a minute. If it ever had
    more, Spark would raise an error.
    """
    from pyspark.sql import functions as f

    return (
        rides.where(f"created_at >= TIMESTAMP '{FIRST}' AND created_at < TIMESTAMP '{END}'")
        .groupBy(f.date_trunc("minute", "created_at").alias("minute"))
        .agg(
            f.count("id").alias("rides"),
            f.sum("distance").alias("distance"),
            f.min("id").alias("first"),
            f.max("id").alias("last"),
        )
    )


def collected(minutes: "DataFrame") -> dict[datetime, Minute]:
    """The result of `by_minute`, in the driver: 1440 rows a day at most."""
    rows = minutes.toArrow().to_pydict().values()
    return {minute: Minute(*row) for minute, *row in zip(*rows, strict=True)}
