"""The cluster: six machines, and the nightly job on them as docs/cluster.md says.

    driver      the job's own process; only it has this project's code at work
    master      Spark's, of the kind that comes with Spark
    postgres    the embedded one, over TCP
    worker1..3  one executor each, with one core

Only the driver and the workers share a folder: the warehouse. Everything is gone afterwards; what a
killed run leaves behind (namespaces, a bridge, a folder), the next one removes.
"""

import contextlib
import fcntl
import json
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

import migrations
from cluster import boot, firewall, network, page, postgres
from cluster.asking import Within
from cluster.machine import HOME, Machine
from cluster.network import NETWORK, NoHosts
from rocket_rides.settings import DATABASE_NAME, embedded_postgres_url

WORKERS = 3
PATIENCE = 120.0  # seconds until something is up, on a busy machine
SHARED = "shared"  # the folder below which the warehouse is, as it is seen from outside
WAREHOUSE = "warehouse"
CONFIGURATION = boot.OWN / "conf"
MASTER = "spark://master:7077"
MASTER_PAGE = 8080
IN_ONE_PROCESS = {"SPARK_MASTER": "local[*]", "SPARK_CONF_DIR": ""}  # settings of the job
# A worker whose host has lost its power can join again once the master takes the old one for dead.
MASTER_OPTIONS = "-Dspark.worker.timeout=15"
SUPERVISED = ("sh", "-c", 'while :; do "$@"; sleep 1; done', "supervised")
CLASSES = "org.apache.spark.deploy.{0}.{1}"


class Failed(Exception):
    """Something on the cluster did not come about; the message says what."""


class Cluster:
    """Machines by name, all of them booted."""

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
        return embedded_postgres_url(self.postgres.disk / postgres.SOCKETS)

    def start(self) -> None:
        """Start Postgres, the master and the workers. Raises Failed."""
        self._start_postgres()
        self._daemon("master", "Master", "--port", "7077", SPARK_MASTER_OPTS=MASTER_OPTIONS)
        self._configure_driver()
        for name in self.workers:
            self.start_worker(name)
        self.wait_for_workers(len(self.workers))

    def start_worker(self, name: str) -> None:
        """A worker may start before its master."""
        options = ["--port", "7083", "--cores", "1", "--memory", "1g"]
        self._daemon(name, "Worker", *options, "--work-dir", str(boot.OWN / "work"), MASTER)

    def wait_for_workers(self, count: int) -> None:
        """Until the master has this many. Raises Failed."""
        with Within(self.machines["master"].host, MASTER_PAGE) as asked:

            def are_there() -> bool:
                known = (asked.json("/json/") or {}).get("workers", ())
                alive = [worker for worker in known if worker["state"] == "ALIVE"]
                return len(alive) == count

            wait_until(are_there, f"{count} workers at the master")

    def reconcile(self, name: str, *options: str, **settings: str) -> subprocess.Popen[bytes]:
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

    def result(self, name: str, job: subprocess.Popen[bytes]) -> dict[str, Any]:
        """What the job found, once it is over. Raises Failed."""
        status = job.wait()
        if not self._result(name).exists():
            said = "\n".join(self.driver.log.read_text(errors="replace").splitlines()[-20:])
            raise Failed(f"the job ended with status {status}: {said}")
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

    def _start_postgres(self) -> None:
        there = self.postgres
        server = there.run("python", "-m", postgres.__name__, there.host.address, NETWORK)
        wait_until(lambda: (there.disk / postgres.READY).exists(), "Postgres", server, there)
        migrations.upgrade(self.url)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(page.block(page.GRANTS).encode())
            self._give_password(connection, postgres.JOB, ["driver"])
            self._give_password(connection, postgres.EXECUTOR, self.workers)

    def _give_password(
        self, connection: psycopg.Connection, role: str, machines: Sequence[str]
    ) -> None:
        """Each machine knows the password of its own role alone."""
        password = secrets.token_hex(16)
        change = sql.SQL("ALTER ROLE {} PASSWORD {}")
        connection.execute(change.format(sql.Identifier(role), sql.Literal(password)))
        for name in machines:
            file = self.machines[name].disk / HOME.name / ".pgpass"
            file.write_text(f"*:*:*:{role}:{password}\n")
            file.chmod(0o600)

    def _configure_driver(self) -> None:
        folder = self.driver.disk / CONFIGURATION.name
        folder.mkdir()
        (folder / "spark-defaults.conf").write_text(page.defaults(driver="driver"))


def kind(name: str) -> str:
    """What a machine is, by its name."""
    return name.rstrip("0123456789")


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


@contextlib.contextmanager
def machines(names: Sequence[str], prefix: str) -> Iterator[dict[str, Machine]]:
    """Machines that only reach each other's documented ports. Raises NoHosts."""
    firewall.require_nft()
    folder = Path(tempfile.gettempdir()) / f"{prefix}-cluster"
    with (
        _the_only_one(folder),
        network.hosts(*names, prefix=prefix, machine=False) as hosts,
        contextlib.ExitStack() as exits,
    ):
        shutil.rmtree(folder, ignore_errors=True)
        exits.callback(shutil.rmtree, folder)
        shared = folder / SHARED
        shared.mkdir(parents=True)
        known = {name: host.address for name, host in zip(names, hosts, strict=True)}
        booted = {}
        for name, host in zip(names, hosts, strict=True):
            firewall.close(host, kind(name), _by_kind(known))
            sees = shared if kind(name) in {"driver", "worker"} else None
            booted[name] = Machine(name, host, folder / name, known, sees)
            booted[name].boot()
            exits.callback(booted[name].crash)
        yield booted


@contextlib.contextmanager
def _the_only_one(folder: Path) -> Iterator[None]:
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NoHosts("another run has the hosts") from None
        yield


def _by_kind(known: dict[str, str]) -> dict[str, list[str]]:
    addresses: dict[str, list[str]] = {}
    for name, address in known.items():
        addresses.setdefault(kind(name), []).append(address)
    return addresses


def wait_until(
    condition: Callable[[], object],
    what: str,
    needs: subprocess.Popen[bytes] | None = None,
    where: Machine | None = None,
    patience: float = PATIENCE,
) -> None:
    """Poll until it holds. Raises Failed, also when the process that it `needs` has ended."""
    deadline = time.monotonic() + patience
    while not condition():
        if needs is not None and needs.poll() is not None:
            said = where.log.read_text(errors="replace")[-2000:] if where else ""
            raise Failed(f"{what}: it ended with status {needs.returncode} before that. {said}")
        if time.monotonic() > deadline:
            raise Failed(f"not within {patience:.0f} s: {what}")
        time.sleep(0.02)
