"""The Spark that runs our tasks, and says nothing unless it can't start.

It is a SparkContext: a SparkSession would load all of Spark SQL, which no task needs.
"""

import logging
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException

from analytics.foreign import ON_THIS_MACHINE, submitted
from analytics.progress import named, shown
from analytics.unknown_user import introduce_us
from unified_log.errors import Unavailable
from unified_log.words import printable

SPARK_ERRORS = (PySparkException, Py4JError)

# What this job sets whatever Spark's own configuration says. No sum is Spark's own, so exactness
# does not depend on that.
REQUIRED = {"spark.app.name": "rocket-rides-reconciliation"}
# Seconds within which a cluster has to do a first task. Spark itself would wait for ever, and a run
# holds its locks.
WORKER_WITHIN = 120.0
# What suits this job, unless Spark's own configuration says something else.
SUITABLE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# When everything runs in one process, nothing accepts connections from outside.
LOCAL = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# Nor from whoever else is on this machine: what comes to Spark's ports becomes objects in the JVM.
# There, Spark makes a secret for each run, and tells nobody. A cluster has to be given one.
AUTHENTICATED = {"spark.authenticate": "true"}
# The line that names an error, in Python's tracebacks and in Java's.
RAISED = re.compile(r'(Exception in thread "main" )?[\w.]+(Error|Exception): ')
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")


@contextmanager
def session(master: str = "") -> Iterator[SparkContext]:
    """A session on `master`; by default where spark-submit says, else in this process.

    A session that is running already is used, and left running. Needs Java (`require_java`). Raises
    Unavailable if Spark can't start, or a cluster has no worker within WORKER_WITHIN.
    """
    if not any("UTF" in os.environ.get(name, "").upper() for name in LOCALE):
        os.environ["LC_ALL"] = "C.UTF-8"  # or Java could not open every file name
    # It repeats what the exception says.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if (running := _running()) is not None:
        yield running
        return
    settings = REQUIRED | _where(master)
    with named("Starting Spark"), _java_kept_apart():
        if not submitted():
            introduce_us()
        for name, value in SUITABLE.items():
            _suggest(name, value)
        master = settings.get("spark.master") or _configured("spark.master") or ""
        is_cluster = not ON_THIS_MACHINE.match(master)
        settings |= {} if is_cluster else AUTHENTICATED
        # On this machine tasks run in our interpreter, whatever others are named for a cluster.
        if not (is_cluster and os.environ.get("PYSPARK_PYTHON")):
            os.environ["PYSPARK_PYTHON"] = sys.executable
        spark = _start(SparkConf().setAll([*settings.items()]))
    try:
        if is_cluster:
            _require_worker(spark, master)
        yield spark
    finally:
        with suppress(*SPARK_ERRORS):  # the work is done, or an error that matters more is raised
            spark.stop()


def _running() -> SparkContext | None:
    """The one that there is, in whatever thread it was made; PySpark has no public name for it."""
    return SparkContext._active_spark_context


def cause(error: Exception, output: str = "") -> str:
    """The root cause of one of SPARK_ERRORS, in one line, without the stack traces."""
    # Py4J writes a colon before what Java has raised.
    stripped = (line.strip().removeprefix(": ") for line in f"{error}\n{output}".splitlines())
    lines = [line for line in stripped if line]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    raised = [line for line in lines if RAISED.match(line)]
    last = (causes or raised or lines or [type(error).__name__])[-1]
    return printable(last.removeprefix("Caused by: "), 500)


def _where(master: str) -> dict[str, str]:
    if master and not ON_THIS_MACHINE.match(master):
        return {"spark.master": master}
    if not master and submitted():
        return {}
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return LOCAL | ({"spark.master": master} if master else {})


def _suggest(name: str, value: str) -> None:
    """Set what neither spark-submit nor spark-defaults.conf has set; starts Java, which knows."""
    if _configured(name) is None:
        SparkContext.setSystemProperty(name, value)


def _configured(name: str) -> str | None:
    """What spark-submit or spark-defaults.conf has set; starts Java, which knows."""
    return SparkContext.getSystemProperty(name)


def _start(conf: SparkConf) -> SparkContext:
    """Start Spark's context, and take back SIGINT: PySpark's handler would end in tracebacks.

    Raises Unavailable if SPARK_HOME has another Spark than this PySpark is for.
    """
    ours = signal.getsignal(signal.SIGINT)
    context = SparkContext.getOrCreate(conf)
    if context.version != pyspark.__version__:
        theirs = f"SPARK_HOME has Spark {context.version}"
        context.stop()
        raise Unavailable(f"{theirs}; Spark {pyspark.__version__} is needed, as PySpark is here")
    if threading.current_thread() is threading.main_thread():  # elsewhere, PySpark sets none
        signal.signal(signal.SIGINT, ours)
    return context


def _require_worker(spark: SparkContext, master: str) -> None:
    """Have the cluster do a task. Stops Spark and raises Unavailable unless it soon does."""

    def ask() -> None:
        with shown(spark, "Waiting for a worker"):
            spark._jsc.parallelize([1]).count()  # in Java alone, which ends with it

    with ThreadPoolExecutor(1) as waiting:
        answer = waiting.submit(ask)
        try:
            answer.result(WORKER_WITHIN)
        except TimeoutError:
            spark.stop()  # which ends the wait of the other thread, too
            none = f"no worker of {master} took a task within {WORKER_WITHIN:g} s"
            raise Unavailable(f"Spark: {none}") from None
        except SPARK_ERRORS as error:
            raise Unavailable(f"Spark: {cause(error)}") from None


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
