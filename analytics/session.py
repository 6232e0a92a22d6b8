"""The Spark session: exact arithmetic, times in UTC, and no output unless it can't start."""

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
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from analytics import java
from analytics.progress import named
from rocket_rides.errors import Unavailable

SPARK_ERRORS = (PySparkException, Py4JError)

# What this job sets whatever Spark's own configuration says: exactness depends on it.
REQUIRED = {
    "spark.app.name": "rocket-rides-reconciliation",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",  # an overflow is an error, never a null
}
# What suits this job, unless Spark's own configuration says something else.
SUITABLE = {
    "spark.sql.shuffle.partitions": "4",  # the shuffled rows are partial sums, so they are few
    # More than 32 folders are listed by tasks: by default one for each folder, which costs ten
    # times as much as listing it.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# When everything runs in one process, nothing accepts connections from outside.
LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# The line that names an error, in Python's tracebacks and in Java's.
RAISED = re.compile(r'(Exception in thread "main" )?[\w.]+(Error|Exception): ')
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
# Whoever sets one of these has a Spark configuration, which may name a master.
CONFIGURED = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")


@contextmanager
def session(master: str = "", *, briefly: bool = False) -> Iterator[SparkSession]:
    """A session on `master`; by default where Spark's configuration says, else in this process.

    `briefly` makes one in this process start sooner, but a long run slower. A session that is
    running already is used, and left running. Needs Java (`require_java`).
    """
    if not any("UTF" in os.environ.get(name, "").upper() for name in LOCALE):
        os.environ["LC_ALL"] = "C.UTF-8"  # or Java could not open every file name
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # It repeats what the exception says.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if (running := _running()) is not None:
        yield running
        return
    settings = REQUIRED | _where(master, briefly)
    with named("Starting Spark"), _java_kept_apart():
        for name, value in SUITABLE.items():
            _suggest(name, value)
        _start(SparkConf().setAll([*settings.items()]))
        spark = SparkSession.builder.getOrCreate()
    try:
        yield spark
    finally:
        with suppress(*SPARK_ERRORS):  # the work is done, or an error that matters more is raised
            spark.stop()


def _running() -> SparkSession | None:
    """The session that there is, in whatever thread it was made."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def cause(error: Exception, output: str = "") -> str:
    """The root cause of one of SPARK_ERRORS, in one line, without the stack traces."""
    lines = [line.strip() for line in f"{error}\n{output}".splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    raised = [line for line in lines if RAISED.match(line)]
    last = (causes or raised or lines or [type(error).__name__])[-1]
    return last.removeprefix("Caused by: ")[:500]


def _where(master: str, briefly: bool) -> dict[str, str]:
    if master and not master.startswith("local"):
        return {"spark.master": master}
    if not master and any(name in os.environ for name in CONFIGURED):
        return {}
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    java.use_archive()
    if briefly:
        java.add_options(java.FIRST_COMPILER_ALONE)
    return LOCAL | ({"spark.master": master} if master else {})


def _suggest(name: str, value: str) -> None:
    """Set what neither spark-submit nor spark-defaults.conf has set; starts Java, which knows."""
    if SparkContext.getSystemProperty(name) is None:
        SparkContext.setSystemProperty(name, value)


def _start(conf: SparkConf) -> None:
    """Start Spark's context, and take back SIGINT: PySpark's handler would end in tracebacks."""
    ours = signal.getsignal(signal.SIGINT)
    SparkContext.getOrCreate(conf)
    if threading.current_thread() is threading.main_thread():  # elsewhere, PySpark sets none
        signal.signal(signal.SIGINT, ours)


@contextmanager
def _java_kept_apart() -> Iterator[None]:
    """Start the JVM with its standard error redirected to a file, which it keeps.

    It prints a dozen lines there at every start, and repeats what exceptions say. If it does not
    start, raises Unavailable with the line that matters.
    """
    ours = os.dup(2)
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        os.dup2(output.fileno(), 2)
        try:
            yield
        except SPARK_ERRORS as error:
            output.seek(0)
            raise Unavailable(f"Spark can't start: {cause(error, output.read())}") from None
        finally:
            os.dup2(ours, 2)
            os.close(ours)
