"""Breaks the cluster while the job runs on it.

Each fault waits for a condition that Spark itself tells of, never for a time: so it comes amid the
stage that it is about, on a machine as fast or as slow as this one.
"""

import subprocess
from collections.abc import Callable
from typing import Any, TypeVar

from cluster import firewall
from cluster.spark import Cluster, wait_until
from cluster.stages import EXTRACT, PORT, REDUCE, Stages

Told = TypeVar("Told")

PATIENCE = 600.0  # seconds; Spark waits for what is gone, and does it over
# With its page, which tells what it is doing; and with many small tasks, so that there is an amid.
OPTIONS = "--conf spark.ui.enabled=true --conf spark.sql.files.maxPartitionBytes=4m pyspark-shell"


def broken(on: Cluster) -> dict[str, Any]:
    """Run the job, with all faults; returns its result. Raises Failed."""
    job = on.reconcile("broken", PYSPARK_SUBMIT_ARGS=OPTIONS)
    with Stages(on.driver.host, PORT) as stages:
        dead = crash(on, stages, EXTRACT, job)
        cut_off_from_postgres(on, stages, job)
        on.machines[dead].boot()
        on.start_worker(dead)
        on.say(f"{dead} has power again, and boots")
        crash(on, stages, REDUCE, job)
    return on.result("broken", job)


def crash(on: Cluster, stages: Stages, stage: str, job: "subprocess.Popen[bytes]") -> str:
    """The power of a worker's host fails, amid this stage; returns which."""
    name = _until(lambda: stages.busy(stage, on.workers), f"amid {stage!r}", job)
    on.machines[name].crash()
    on.say(f"{name} has lost its power amid {stage!r}")
    return name


def cut_off_from_postgres(on: Cluster, stages: Stages, job: "subprocess.Popen[bytes]") -> None:
    """A worker that reads rides is cut off until a task of it has failed for that."""
    name = _until(lambda: stages.busy(EXTRACT, on.workers), f"amid {EXTRACT!r}", job)
    host, postgres = on.machines[name].host, on.postgres.host.address
    before = stages.failed_on(name)
    firewall.cut_off(host, postgres)
    on.say(f"{name} is cut off from Postgres, and from nothing else")
    _until(lambda: stages.failed_on(name) > before, f"a task on {name} has failed", job)
    firewall.join_again(host, postgres)
    on.say(f"{name} has noticed, and reaches Postgres again")


def _until(condition: Callable[[], Told], what: str, job: "subprocess.Popen[bytes]") -> Told:
    """What the condition says once it says something. Raises Failed."""
    told: list[Told] = []

    def holds() -> bool:
        told[:] = [condition()]
        return bool(told[0])

    wait_until(holds, what, needs=job, patience=PATIENCE)
    return told[0]
