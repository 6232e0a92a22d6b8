"""The ratings: what each consumer has counted is compared with what Spark adds up from the table.

A rating never changes, and all of them up to a checkpoint are settled. So one statement reads where
the consumers stand, and Spark reads the ratings up to there afterwards. There is no warehouse of
ratings: every run reads them all, for each position at which a consumer stands.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

import psycopg

from analytics import extract
from analytics.result import CountedRatings, RatingsVerdict
from rocket_rides.database import one_row

if TYPE_CHECKING:
    from pyspark import SparkContext

# An application that has lifted this job may have no ratings.
ARE_THERE = "SELECT to_regclass('rating_sums') IS NOT NULL"
STAND = """
    SELECT name, position, ratings, stars, position > last_sent_id
    FROM rating_sums JOIN checkpoints USING (kind, name) CROSS JOIN streamer_state ORDER BY name
"""
STARS = "SELECT stars FROM {table} WHERE id <= {upto}"


def prove(
    connection: psycopg.Connection,
    spark: "SparkContext",
    url: str,
    shown: Callable[[str], AbstractContextManager[object]],
) -> RatingsVerdict:
    """Compare every consumer's number of ratings, and its sum, at its own position."""
    if not one_row(connection.execute(ARE_THERE))[0]:
        return RatingsVerdict()
    if not (stand := connection.execute(STAND).fetchall()):
        return RatingsVerdict()
    positions = {position for _, position, *_ in stand}
    url = extract.for_executors(url, sys.modules[__name__])
    add_up = partial(_add_up, url, extract.this_table(connection, "ratings"))
    with shown("Adding up ratings"):
        exact = dict(spark.parallelize(positions, len(positions)).map(add_up).collect())
    return RatingsVerdict([CountedRatings(*row, *exact[row[1]]) for row in stand])


def _add_up(url: str, table: str, upto: int) -> tuple[int, list[int]]:
    """A position, the number of ratings up to there, and their stars. Runs on an executor."""
    import pyarrow.compute as pc

    ratings = stars = 0
    with extract.reading(url, STARS.format(table=table, upto=upto)) as batches:
        for batch in batches:
            ratings += batch.num_rows
            stars += pc.sum(batch.column(0)).as_py() or 0
    return upto, [ratings, stars]
