"""What people ask of the rides, of the last weeks: by hour, how the distances spread, and peaks.

They are asked for with the page alone: a night without one does not read weeks of rides.
"""

from collections.abc import Collection
from datetime import date, datetime
from typing import TYPE_CHECKING

from analytics.minutes import END, Minutes, by_minute, collected
from analytics.result import NOTHING, Figures, Tally, Week

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WEEKS = 13  # a quarter of a year
PERCENTILES = (10, 50, 90, 99)


def last_weeks(days: Collection[date]) -> list[date]:
    """Of these days, those in the last WEEKS weeks, up to the week of the last of them.

    The last day that there is stands for times without end.
    """
    ended = [day for day in days if day < END]
    newest = max(ended, default=date.min)
    since = newest.toordinal() - newest.weekday() - 7 * (WEEKS - 1)
    return sorted(day for day in ended if day.toordinal() >= since)


def figures(rides: "DataFrame") -> Figures:
    """Describe these rides (id, created_at, distance)."""
    minutes = collected(by_minute(rides))
    weeks = weekly(rides).orderBy("monday").collect()
    return Figures(by_hour(minutes), [Week(*row) for row in weeks], busiest(minutes))


def by_hour(minutes: Minutes) -> dict[datetime, Tally]:
    """The sums of each hour that has rides, by its beginning."""
    hours: dict[datetime, Tally] = {}
    for minute in sorted(minutes):
        hour = minute.replace(minute=0)
        hours[hour] = hours.get(hour, NOTHING).plus(minutes[minute].tally)
    return hours


def busiest(minutes: Minutes) -> tuple[datetime, Tally] | None:
    """The minute with the most rides: the first of them."""
    if not minutes:
        return None
    minute = min(minutes, key=lambda minute: (-minutes[minute].rides, minute))
    return minute, minutes[minute].tally


def weekly(rides: "DataFrame") -> "DataFrame":
    """The columns of Week, for each week that has rides.

    Ranks them by a sort, which Spark does on disk if need be: its own percentiles count how often
    each distance occurs, and so would keep most of them in memory.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    monday = f.to_date(f.date_trunc("week", "created_at")).alias("monday")
    week = Window.partitionBy("monday")
    rank, of = f.row_number().over(week.orderBy("distance")), f.count("*").over(week)
    ranked = rides.select(monday, "distance").withColumns({"rank": rank, "of": of})
    percentiles = (
        f.max(f.expr(f"CASE WHEN rank = (of * {percent} + 99) div 100 THEN distance END"))
        .alias(f"p{percent}")
        for percent in PERCENTILES
    )  # fmt: skip
    return ranked.groupBy("monday").agg(
        f.count("*").alias("rides"),
        f.sum("distance").alias("distance"),
        *percentiles,
        f.max("distance").alias("longest"),
    )
