"""Breaks the cluster while the job runs on it.

Each fault waits for a condition that Spark itself tells of, never for a time: so it comes amid the
stage that it is about, on a machine as fast or as slow as this one.
"""

import subprocess
from collections import Counter
from typing import Any

from cluster import boot, firewall
from cluster.events import losses
from cluster.spark import Cluster
from cluster.stages import EXTRACT, PORT, REDUCE, Stages
from cluster.waiting import Failed, wait_until

PATIENCE = 600.0  # seconds; Spark waits for what is gone, and does it over
EVENTS = boot.OWN / "events"
OPTIONS = {
    "spark.ui.enabled": "true",  # its page tells what it is doing
    "spark.ui.liveUpdate.period": "10ms",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": EVENTS.as_uri(),
    "spark.eventLog.compress": "false",
    # Many small tasks, so that there is an amid.
    "spark.default.parallelism": "12",
    "spark.sql.files.maxPartitionBytes": "4m",
}


def broken(on: Cluster) -> dict[str, Any]:
    """Run the job, with all faults; returns its result. Raises Failed."""
    options = " ".join(f"--conf {name}={value}" for name, value in OPTIONS.items())
    settings = {
        "PYSPARK_SUBMIT_ARGS": f"{options} pyspark-shell",
    }
    (on.driver.disk / EVENTS.name).mkdir(exist_ok=True)
    job = on.reconcile("broken", **settings)
    with Stages(on.driver.host, PORT) as stages:
        dead = crash(on, stages, EXTRACT, job)
        cut_off_from_postgres(on, stages, job)
        on.machines[dead].boot()
        on.start_worker(dead)
        on.say(f"{dead} has power again, and boots")
        late = crash(on, stages, REDUCE, job)
    result = on.result("broken", job)
    lost = losses(on.driver.disk / EVENTS.name)
    on.say(f"the job has ended, after {result['seconds']:.0f} s of work; {lost}")
    if not Counter([dead, late]) <= Counter(lost.workers):
        raise Failed(f"{dead} and {late} were to be lost, and Spark says: {lost}")
    return result


def crash(on: Cluster, stages: Stages, stage: str, job: "subprocess.Popen[bytes]") -> str:
    """The power of a worker's host fails, amid this stage; returns which."""
    name = wait_until(lambda: stages.busy(stage, on.workers), f"amid {stage!r}", job, PATIENCE)
    on.machines[name].crash()
    on.say(f"{name} has lost its power amid {stage!r}")
    return name


def cut_off_from_postgres(on: Cluster, stages: Stages, job: "subprocess.Popen[bytes]") -> None:
    """A worker that reads rides is cut off until a task of it has failed for that."""
    name = wait_until(lambda: stages.busy(EXTRACT, on.workers), f"amid {EXTRACT!r}", job, PATIENCE)
    host, postgres = on.machines[name].host, on.postgres.host.address
    before = stages.failed_on(name)
    firewall.cut_off(host, postgres)
    on.say(f"{name} is cut off from Postgres, and from nothing else")
    wait_until(lambda: stages.failed_on(name) > before, f"a failed task on {name}", job, PATIENCE)
    firewall.join_again(host, postgres)
    on.say(f"{name} has noticed, and reaches Postgres again")
