"""The nightly job on workers in processes of their own, of which one is killed amid the extract.

Spark's own `local-cluster` starts them on this machine. What they need of each other on hosts of
their own, docs/reconcile.md says.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars
import psutil
import pyspark
import pytest

from tests.support.jobs import SPARK_PATIENCE, ended, start
from tests.support.world import Service, World, eventually

ONE_PROCESS, WORKERS = "local[2]", "local-cluster[2,1,1024]"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
FOUND = ("total", "consumers", "mismatches", "rollup", "receipts", "outbox")
# No task begins before both are there: one that starts late would find nothing left to read.
BOTH_WORKERS = """
spark.cores.max 2
spark.scheduler.minRegisteredResourcesRatio 1.0
spark.scheduler.maxRegisteredResourcesWaitingTime 120s
"""
RIDES = 600_000  # four tasks, two at a time
INSERT = """
    INSERT INTO rides (distance, created_at)
    SELECT (1 + number * 7919 %% 9999991) / 1000.0,
           timestamptz '2026-03-01 00:00+00' + number * interval '0.5 s'
    FROM generate_series(1::bigint, %s) number
"""
SENT = "UPDATE streamer_state SET last_sent_id = (SELECT last_value FROM log_position)"
STANDS = "INSERT INTO checkpoints (kind, name, last_ride_id) VALUES ('total', 'short', %s)"
A_MILLIMETRE_SHORT = """
    INSERT INTO consumer_states (name, total_distance)
    SELECT 'short', sum(distance) - 0.001 FROM rides WHERE id <= %s
"""
# The statement of a task that reads its range, and whether it waits for a lock.
READING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'reconciler' AND query LIKE '%%millimetres%%'
    AND state = 'active' AND (wait_event_type IS NOT DISTINCT FROM 'Lock') = %s
"""


def a_spark_of_its_own(folder: Path) -> Path:
    """PySpark's folder, but for what workers write to, and with settings: they are here."""
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name not in ("conf", "work"):
            (folder / part.name).symlink_to(part)
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(BOTH_WORKERS)
    return folder


def begin(world: World, name: str, **settings: str) -> Service:
    """A run with a warehouse of this name."""
    told = str(world.folder / f"{name}.json")
    return start(world, "--json", told, WAREHOUSE_DIR=str(world.folder / name), **settings)


def found(world: World, name: str, job: Service) -> dict[str, Any]:
    """What it found; and how many rides its warehouse holds, read by another engine."""
    status, said = ended(job)
    assert status == 1, said  # it found the drift
    told = json.loads((world.folder / f"{name}.json").read_text())
    rides = polars.scan_delta(str(world.folder / name / "rides"))
    sums = rides.select(polars.len(), polars.n_unique("id"), polars.sum("distance")).collect()
    return {"warehouse": sums.row(0), **{key: told[key] for key in FOUND}}


def executors(job: Service) -> list[psutil.Process]:
    found = []
    for process in psutil.Process(job.process.pid).children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            if EXECUTOR in process.cmdline():
                found.append(process)
    return found


def kill_a_worker(world: World, job: Service) -> None:
    """While its task reads, and others have yet to begin: no task can end until then."""
    eventually(lambda: world.value(READING, False), "a task that reads", SPARK_PATIENCE)
    with world.connect().transaction() as held:
        held.connection.execute("LOCK TABLE rides IN ACCESS EXCLUSIVE MODE")
        eventually(lambda: world.value(READING, True) == 2, "a task on each worker")
        first, _second = executors(job)
        first.kill()
        first.wait()


@pytest.mark.usefixtures("java")
def test_workers_find_what_one_process_finds_although_one_of_them_is_killed(
    world: World, tmp_path: Path
) -> None:
    world.connection.execute(INSERT, [RIDES])
    world.connection.execute(SENT)
    world.connection.execute(STANDS, [RIDES * 2 // 3])
    world.connection.execute(A_MILLIMETRE_SHORT, [RIDES * 2 // 3])
    alone = found(world, "alone", begin(world, "alone", SPARK_MASTER=ONE_PROCESS))
    assert alone["warehouse"] == (RIDES, RIDES, world.truth[1])
    spark = {"SPARK_HOME": str(a_spark_of_its_own(tmp_path)), "PYSPARK_PYTHON": sys.executable}
    job = begin(world, "spread", SPARK_MASTER=WORKERS, **spark)
    kill_a_worker(world, job)
    assert found(world, "spread", job) == alone
