"""The deadline of Spark's tasks: while they read, the driver asks whether Postgres is there.

A task reads through ADBC, which waits for a frozen server as long as that is frozen: libpq has no
time-out for an answer, and ADBC lets nobody else close its connection. So the driver asks, in a
session of its own, which has a deadline (`unified_log.deadline`). If no answer is to be expected,
it cancels the run's jobs. A task that is cancelled is not tried again, as one that fails would be
on a cluster, and Spark ends its Python worker if that goes on waiting.

What it guarantees: no task is waited for longer than a dozen seconds after the server has frozen.
While that answers, a task may take as long as it takes, since its statements have no limit.
"""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import psycopg
from pyspark import SparkContext

from analytics.progress import JOBS
from analytics.session import SPARK_ERRORS, cause, session
from rocket_rides.settings import Settings
from unified_log import database, deadline
from unified_log.errors import Unavailable


@contextmanager
def spark_with_deadline(config: Settings) -> Iterator[SparkContext]:
    """Spark, whose tasks have that deadline.

    Raises Unavailable for Spark's errors, or psycopg.Error once Postgres does not answer.
    """
    try:
        with (
            session(config.spark_master) as spark,
            asking(config.postgres_url, spark),
        ):
            yield spark
    except SPARK_ERRORS as error:
        raise Unavailable(f"Spark: {cause(error)}") from None


@contextmanager
def asking(url: str, spark: SparkContext) -> Iterator[None]:
    """Ask every few seconds while the block runs jobs, each of them `analytics.progress.shown`.

    Raises psycopg.Error, in place of what the block raises, once the session is lost;
    and Unavailable if there can be none.
    """
    lost = list[psycopg.Error]()
    done = threading.Event()

    def ask() -> None:
        while not done.wait(deadline.EVERY):
            try:
                connection.execute("SELECT")
            except psycopg.Error as error:  # raised again by each later attempt
                lost.append(error)
                with suppress(*SPARK_ERRORS):
                    spark.cancelJobGroup(JOBS)  # and those that began since

    with closing(database.connect(url, "reconciler")) as connection:
        asks = threading.Thread(target=ask, name="asking", daemon=True)
        asks.start()
        try:
            yield
        except Exception:
            if lost:
                raise lost[0] from None
            raise
        finally:
            done.set()
            asks.join()
