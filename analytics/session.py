"""The Spark session: exact arithmetic, dates in UTC, and quiet unless it can't start."""

import logging
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from analytics.progress import starting
from rocket_rides.errors import Unavailable

SPARK_ERRORS = (PySparkException, Py4JError)

REQUIRED = {
    "spark.app.name": "rocket-rides-reconciliation",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",  # an overflow is an error and never a null
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A range of ids spans few days: no need to sort it by day before it is written.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.sql.shuffle.partitions": "4",  # what is shuffled has been added up before
    # More than 32 folders are listed by tasks. By default each folder has one, which costs ten
    # times as much as to list it.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Nothing listens to the outside when everything runs in one process.
LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# The line that names an error, in Python's stacks and in Java's.
RAISED = re.compile(r'(Exception in thread "main" )?[\w.]+(Error|Exception): ')
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
# Who has set one of these has a Spark configuration, which may name a master.
CONFIGURED = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")


@contextmanager
def session(master: str = "") -> Iterator[SparkSession]:
    """A session on `master`; without one, where Spark's own configuration says, or right here.

    One that is there already is used, and left running. Needs what `require_java` looks for.
    """
    if not any("UTF" in os.environ.get(name, "").upper() for name in LOCALE):
        os.environ["LC_ALL"] = "C.UTF-8"  # or Java could not name every file
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # the exception says it
    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    interrupt = signal.getsignal(signal.SIGINT)
    builder = SparkSession.builder
    for name, value in (REQUIRED | _where(master)).items():
        builder = builder.config(name, value)
    with starting(), _java_kept_apart():
        spark = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)  # PySpark's own handler ends in tracebacks
    try:
        yield spark
    finally:
        with suppress(*SPARK_ERRORS):  # by now the work is done, or has failed for a better reason
            spark.stop()


def cause(error: Exception, said: str = "") -> str:
    """What lies at the bottom of one of SPARK_ERRORS, without the stacks above it: one line."""
    lines = [line.strip() for line in f"{error}\n{said}".splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    raised = [line for line in lines if RAISED.match(line)]
    last = (causes or raised or lines or [type(error).__name__])[-1]
    return last.removeprefix("Caused by: ")[:500]


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

    It says a dozen lines there at every start, and repeats what exceptions say. Raises Unavailable
    with the one that matters when it does not start.
    """
    ours = os.dup(2)
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except SPARK_ERRORS as error:
            said.seek(0)
            raise Unavailable(f"Spark can't start: {cause(error, said.read())}") from None
        finally:
            os.dup2(ours, 2)
            os.close(ours)
