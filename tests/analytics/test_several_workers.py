"""The nightly job on workers in processes of their own, of which one is killed amid the extract.

`spark-submit` starts it, as docs/reconcile.md says, under somebody's own configuration of Spark.
Spark's own `local-cluster` starts the workers on this machine. What they need of each other on
hosts of their own, the same page says.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path

import polars
import psutil
import pyspark
import pytest

from rocket_rides.settings import PROJECT
from tests.support.books import MILLIMETRE, Books
from tests.support.jobs import SPARK_PATIENCE
from tests.support.object_stores import root_of
from tests.support.world import World, eventually
from unified_log.database import one_row

WORKERS = "local-cluster[2,1,1024]"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
RIDES = 220_000  # three tasks, two at a time
SHORT = RIDES * 2 // 3  # where a total stands that is wrong
EVERY_HALF_SECOND = "timestamptz '2026-03-01 00:00+00' + number * interval '0.5 s'"
# How many of the run's sessions wait for a lock: those of tasks that read or count, and others.
WAITING = """
    SELECT count(*) FILTER (WHERE is_task), count(*) FILTER (WHERE NOT is_task)
    FROM pg_stat_activity, LATERAL (SELECT
        query LIKE '%millimetres%' OR query LIKE '%log_records WHERE id >%' AS is_task
    ) what
    WHERE application_name = 'reconciler' AND state = 'active' AND wait_event_type = 'Lock'
"""
# No task begins before both are there: one that starts late would find nothing left to read.
BOTH_WORKERS = {
    "spark.cores.max": "2",
    "spark.default.parallelism": "4",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}
ASKED_FOR = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.ansi.enabled": "false",
    "spark.authenticate": "true",
    "spark.authenticate.secret": "known to all workers",
}
LOGGED_AS = {"spark.authenticate.secret": "*********(redacted)"}
AND_SUITABLE = {"spark.ui.showConsoleProgress": "false"}
LOGGED = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


def a_spark_of_its_own(folder: Path) -> Path:
    """PySpark's folder, but for what workers write to, and with settings: they are here."""
    spark, events = folder / "spark", folder / "events"
    for place in (spark / "conf", events):
        place.mkdir(parents=True)
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name not in ("conf", "work"):
            (spark / part.name).symlink_to(part)
    given = BOTH_WORKERS | ASKED_FOR | LOGGED | {"spark.eventLog.dir": events.as_uri()}
    settings = "".join(f"{name} {value}\n" for name, value in given.items())
    (spark / "conf" / "spark-defaults.conf").write_text(settings)
    return spark


@contextmanager
def submitted(world: World, spark: Path, root: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run by spark-submit."""
    settings = {
        "DATABASE_URL": world.postgres_url,
        "WAREHOUSE_DIR": root,
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT),
    }
    told = ("--json", str(world.folder / "told.json"))
    with (world.folder / "output").open("wb") as output:
        job = subprocess.Popen(
            [spark / "bin/spark-submit", "--master", WORKERS, "analytics/reconcile.py", *told],
            cwd=PROJECT,
            env=os.environ | settings,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield job
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def executors(job: subprocess.Popen[bytes]) -> list[psutil.Process]:
    found = []
    for process in psutil.Process(job.pid).children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            if EXECUTOR in process.cmdline():
                found.append(process)
    return found


def kill_a_worker(world: World, job: subprocess.Popen[bytes]) -> None:
    """While a task of each reads, and others have yet to begin: no task can end until then.

    Whatever the driver reads before is let by, one statement after the other.
    """
    holding = world.connect()

    def waiting() -> tuple[int, int] | None:
        tasks, others = one_row(world.connection.execute(WAITING))
        return (tasks, others) if tasks == 2 or (others and not tasks) else None

    while True:
        with holding.transaction():
            holding.execute("LOCK TABLE rides IN ACCESS EXCLUSIVE MODE")
            tasks, _ = eventually(waiting, "a task on each worker", SPARK_PATIENCE)
            if tasks:
                first, _second = executors(job)
                first.kill()
                first.wait()
                return


@pytest.mark.usefixtures("java")
def test_workers_find_a_millimetre_although_one_of_them_is_killed(
    world: World, bucket: Path
) -> None:
    """They write to an object store."""
    books, root = Books(world), root_of(bucket)
    books.add_many(RIDES, at=EVERY_HALF_SECOND)
    books.claim("short", SHORT, drift=-MILLIMETRE)
    books.claim("witness", RIDES)
    with submitted(world, a_spark_of_its_own(world.folder), root) as job:
        kill_a_worker(world, job)
        drifted = job.wait(SPARK_PATIENCE)
    assert drifted == 1, (world.folder / "output").read_text()
    told = json.loads((world.folder / "told.json").read_text(), parse_float=Decimal)
    _, metres = world.truth
    assert told["total"] == {"rides": RIDES, "distance": metres}
    drifts = {one["name"]: (one["drift"], one["reset"]) for one in told["consumers"]}
    assert drifts == {"short": (-MILLIMETRE, True), "witness": (0, False)}
    assert told["mismatches"] == []
    rides = polars.scan_delta(f"{root}/rides")
    sums = polars.len(), polars.n_unique("id"), polars.sum("distance")
    assert rides.select(*sums).collect().row(0) == (RIDES, RIDES, metres)
    tells_what_ran_under_which_settings(world.folder / "events")


def tells_what_ran_under_which_settings(events: Path) -> None:
    """Fails unless Spark's event log does."""
    [log] = events.iterdir()
    told = [json.loads(line) for line in log.read_text().splitlines()]

    def of(kind: str) -> list[dict[str, dict[str, str]]]:
        return [event for event in told if event["Event"] == f"SparkListener{kind}"]

    [settings] = (event["Spark Properties"] for event in of("EnvironmentUpdate"))
    expected = ASKED_FOR | AND_SUITABLE | LOGGED_AS
    assert settings["spark.app.name"] == "rocket-rides-reconciliation"
    assert {name: settings[name] for name in expected} == expected
    assert {event["Properties"]["spark.job.description"] for event in of("JobStart")} == {
        "Waiting for a worker",
        "Counting records",
        "Extracting new rides",
    }
    assert {event["Job Result"]["Result"] for event in of("JobEnd")} == {"JobSucceeded"}
    assert of("ApplicationEnd")
