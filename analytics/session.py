"""The Spark session: exact arithmetic, dates in UTC, and quiet unless it can't start."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from analytics.java import require_java
from analytics.progress import starting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REQUIRED = {
    "spark.app.name": "rocket-rides-reconciliation",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",  # an overflow is an error and never a null
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A range of ids spans few days: no need to sort it by day before it is written.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.sql.shuffle.partitions": "4",  # what is shuffled has been added up before
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Nothing listens to the outside when everything runs in one process.
LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# Who has set one of these has a Spark configuration, which may name a master.
CONFIGURED = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")


@contextmanager
def session(master: str = "") -> Iterator["SparkSession"]:
    """A session on `master`; without one, where Spark's own configuration says, or right here.

    One that is there already is used, and left running. Raises Unavailable when there is no Java
    that Spark can run on.
    """
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # the exception says it
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    builder = SparkSession.builder
    for name, value in (REQUIRED | _where(master)).items():
        builder = builder.config(name, value)
    with starting(), _java_kept_apart():
        spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _where(master: str) -> dict[str, str]:
    if master and not master.startswith("local"):
        return {"spark.master": master}
    if not master and any(name in os.environ for name in CONFIGURED):
        return {}
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return LOCAL | ({"spark.master": master} if master else {})


@contextmanager
def _java_kept_apart() -> Iterator[None]:
    """Give the JVM, which keeps the standard error that it starts with, one of its own.

    It says a dozen lines there at every start, and repeats what exceptions say. They are shown
    only when it does not start.
    """
    ours = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except BaseException:
            said.seek(0)
            os.write(ours, said.read()[-4000:])
            raise
        finally:
            os.dup2(ours, 2)
            os.close(ours)
