"""The Spark session of a run."""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_session_that_is_there_is_used_and_left_running_by_any_thread(
    spark: "SparkSession",
) -> None:
    """Java knows only by the thread which session is active."""
    from analytics.session import session

    def count() -> int:
        with session() as used:
            return used.range(3).count()

    with ThreadPoolExecutor(1) as another:
        assert another.submit(count).result() == 3
    assert spark.range(3).count() == 3
