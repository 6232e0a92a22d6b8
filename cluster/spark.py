"""The cluster: six machines, and the nightly job on them as docs/cluster.md says.

    driver      the job's own process; only it has this project's code at work
    master      of the kind that comes with Spark
    postgres    the embedded one, over TCP
    worker1..3  one executor each, with one core

Only the driver and the workers share a folder: the warehouse.
"""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from cluster import boot, firewall, page, postgres
from cluster.asking import Within
from cluster.machine import Machine
from cluster.machines import SHARED, kind, machines
from cluster.waiting import LAST, Failed, wait_until
from rocket_rides.settings import DATABASE_NAME

WORKERS = 3
CONFIGURATION = boot.OWN / "conf"
WAREHOUSE = "warehouse"
MASTER = "spark://master:7077"
MASTER_PAGE = 8080
IN_ONE_PROCESS = {"SPARK_MASTER": "local[*]", "SPARK_CONF_DIR": ""}  # settings of the job
# A worker whose host has lost its power can join again once the master takes the old one for dead.
MASTER_OPTIONS = "-Dspark.worker.timeout=15"
SUPERVISED = ("sh", "-c", 'while :; do "$@"; sleep 1; done', "supervised")
CLASSES = "org.apache.spark.deploy.{0}.{1}"


class Cluster:
    """Machines by name, and what runs on them."""

    def __init__(self, machines: dict[str, Machine], say: Callable[[str], None]) -> None:
        self.machines = machines
        self.say = say

    @property
    def driver(self) -> Machine:
        return self.machines["driver"]

    @property
    def postgres(self) -> Machine:
        return self.machines["postgres"]

    @property
    def workers(self) -> list[str]:
        """Those that have power."""
        return [name for name, each in self.machines.items() if kind(name) == "worker" and each.on]

    @property
    def url(self) -> str:
        """Postgres' own socket, for whoever is at its machine."""
        return postgres.url(self.postgres)

    def start(self) -> None:
        """Start Postgres, the master and the workers. Raises Failed."""
        postgres.start(self.postgres, self.driver, map(self.machines.__getitem__, self.workers))
        self._daemon("master", "Master", "--port", "7077", SPARK_MASTER_OPTS=MASTER_OPTIONS)
        for name in self.workers:
            self.start_worker(name)
        configuration = self.driver.disk / CONFIGURATION.name
        configuration.mkdir()
        (configuration / "spark-defaults.conf").write_text(page.defaults(driver="driver"))
        self._wait_for_workers()

    def start_worker(self, name: str) -> None:
        """A worker may start before its master, and before the master has given the old one up."""
        options = ["--port", "7083", "--cores", "1", "--memory", "1g"]
        self._daemon(name, "Worker", *options, "--work-dir", str(boot.OWN / "work"), MASTER)

    def reconcile(self, name: str, *options: str, **settings: str) -> "subprocess.Popen[bytes]":
        """Start the job, on the cluster unless the settings say otherwise; see `result`."""
        self._result(name).unlink(missing_ok=True)
        return self.driver.run(
            *("python", "-m", "analytics.reconcile", *options),
            *("--json", str(boot.OWN / self._result(name).name)),
            **{
                "DATABASE_URL": f"postgresql://postgres/{DATABASE_NAME}",
                "PGUSER": postgres.JOB,
                "WAREHOUSE_DIR": str(boot.SHARED / WAREHOUSE),
                "SPARK_MASTER": MASTER,
                "SPARK_CONF_DIR": str(CONFIGURATION),
                **settings,
            },
        )

    def result(self, name: str, job: "subprocess.Popen[bytes]") -> dict[str, Any]:
        """What the job found, once it is over. Raises Failed."""
        status = job.wait()
        if not self._result(name).exists():
            said = self.driver.log.read_text(errors="replace")[-LAST:]
            raise Failed(f"the job has ended with status {status}:\n{said}")
        found: dict[str, Any] = json.loads(self._result(name).read_text(), parse_float=Decimal)
        return found

    def forget_warehouse(self) -> None:
        """The next run starts at the first ride."""
        shutil.rmtree(self.driver.disk.parent / SHARED / WAREHOUSE, ignore_errors=True)

    def refused(self) -> int:
        """How many connections were tried that docs/cluster.md does not name."""
        return sum(firewall.refused(machine.host) for machine in self.machines.values())

    def _result(self, name: str) -> Path:
        return self.driver.disk / f"{name}.json"

    def _daemon(self, name: str, what: str, *options: str, **environment: str) -> None:
        named = CLASSES.format(what.lower(), what)
        words = (*SUPERVISED, "spark-class", named, "--host", name, *options)
        self.machines[name].run(*words, SPARK_DAEMON_MEMORY="256m", **environment)

    def _wait_for_workers(self) -> None:
        """Until the master has all of them."""
        with Within(self.machines["master"].host, MASTER_PAGE) as asked:

            def all_are_there() -> bool:
                known = (asked.json("/json/") or {}).get("workers", ())
                return [each["state"] for each in known] == ["ALIVE"] * len(self.workers)

            wait_until(all_are_there, "all workers at the master")


@contextlib.contextmanager
def cluster(
    say: Callable[[str], None] = lambda _: None, workers: int = WORKERS, prefix: str = "rides"
) -> Iterator[Cluster]:
    """A cluster that runs. Raises NoHosts, Failed."""
    names = ["driver", "master", "postgres", *(f"worker{n}" for n in range(1, workers + 1))]
    with machines(names, prefix) as booted:
        running = Cluster(booted, say)
        running.start()
        yield running
