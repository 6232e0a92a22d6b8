"""Names on a terminal what the job is waiting for. Without a terminal, nothing is printed."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext
from tqdm import tqdm

JOBS = "reconciliation"  # the group of this run's jobs, by which they are cancelled


@contextmanager
def named(what: str) -> Iterator[None]:
    """Show this for as long as it takes."""
    with tqdm(bar_format=what, total=1, leave=False, disable=None):
        yield


@contextmanager
def shown(spark: SparkContext, stage: str) -> Iterator[None]:
    """Show this stage, and call Spark's jobs by its name, as Spark's own pages do.

    They are of the group JOBS.
    """
    spark.setJobGroup(JOBS, stage)
    try:
        with named(stage):
            yield
    finally:
        spark.setJobDescription("")
