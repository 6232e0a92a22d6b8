"""The job as a person runs it: what keeps it from running is one clear line."""

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest

from analytics.java import FIRST_COMPILER_ALONE, OPTIONS
from analytics.ledger import Ledger, Owner
from analytics.prerequisites import WANTED
from analytics.reconcile import FEW
from analytics.warehouse import Warehouse
from rocket_rides.locks import Lock
from rocket_rides.settings import PROJECT
from tests.support.jobs import alive, ended, start
from tests.support.world import World, eventually

HOLD_THE_LOCK = f"SELECT pg_advisory_lock({Lock.RECONCILIATION:d})"


def an_old_java(world: World) -> dict[str, str]:
    java = world.folder / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(world.folder / "old")}


def no_java(_world: World) -> dict[str, str]:
    return {"JAVA_HOME": "/nowhere"}


def no_database(world: World) -> dict[str, str]:
    return {"DATABASE_URL": f"postgresql:///none?host={world.folder}"}


def an_old_schema(world: World) -> dict[str, str]:
    world.connection.execute("UPDATE alembic_version SET version_num = '0009'")
    return {}


def a_file_for_a_warehouse(world: World) -> dict[str, str]:
    (world.folder / "file").touch()
    return {"WAREHOUSE_DIR": str(world.folder / "file")}


def another_databases_warehouse(world: World) -> dict[str, str]:
    warehouse = Warehouse(world.folder / "warehouse")
    warehouse.make_ready()
    theirs = Owner(5, database_id="1-1", term="")
    warehouse.publish([], 0, Ledger(), theirs)
    return {"SPARK_MASTER": "none://here"}  # it is refused before Spark is started


def another_run(world: World) -> dict[str, str]:
    world.connection.execute(HOLD_THE_LOCK)
    return {}


REFUSALS = [
    (no_java, f"{WANTED}; there is none in JAVA_HOME, /nowhere"),
    (an_old_java, "is Java 11"),
    (no_database, "Postgres can't be reached"),
    (an_old_schema, "the database's schema is 0009, of an earlier design"),
    (a_file_for_a_warehouse, "can't be written to"),
    (another_run, "another run is in progress"),
    (another_databases_warehouse, "another database's: set another WAREHOUSE_DIR"),
]


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize(("prepare", "reason"), REFUSALS)
def test_what_keeps_the_job_from_running_is_status_2_and_one_line(
    world: World, prepare: Callable[[World], dict[str, str]], reason: str
) -> None:
    status, said = ended(start(world, **prepare(world)))
    assert status == 2
    [line] = said.splitlines()
    assert line.startswith("not reconciled: ")
    assert reason in line


def test_a_file_that_could_not_be_written_is_refused_before_anything_is_done(world: World) -> None:
    status, said = ended(start(world, "--json", "/nowhere/result.json"))
    assert status == 2
    assert "/nowhere/result.json can't be written" in said


@pytest.mark.usefixtures("java")
def test_a_master_that_spark_does_not_know_is_one_line(world: World) -> None:
    status, said = ended(start(world, SPARK_MASTER="nonsense"))
    assert status == 2
    [line] = said.splitlines()
    assert line.startswith("not reconciled: Spark can't start: ")
    assert "Could not parse Master URL: 'nonsense'" in line


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize(
    ("last_sent", "options", "briefly"),
    [(FEW, [], True), (FEW + 1, [], False), (FEW, ["--full"], False)],
    ids=["few rides", "many rides", "all rides"],
)
def test_java_compiles_for_the_long_run_only_where_there_is_one(
    world: World, last_sent: int, options: list[str], *, briefly: bool
) -> None:
    world.connection.execute("UPDATE streamer_state SET last_sent_id = %s", [last_sent])
    job = start(world, *options)
    given = eventually(lambda: options_of_java(psutil.Process(job.process.pid)), "Java")
    assert given
    assert (FIRST_COMPILER_ALONE in given) == briefly
    job.process.send_signal(signal.SIGINT)
    ended(job)


def options_of_java(job: psutil.Process) -> str | None:
    """What its Spark is started with; the job asks for Java's version first."""
    for child in job.children(recursive=True):
        with suppress(psutil.Error):
            if child.name() == "java" and "org.apache.spark" in " ".join(child.cmdline()):
                return child.environ().get(OPTIONS)
    return None


LOOK_AT_THE_HANDLER = """
import signal
from pyspark.sql import SparkSession
from analytics.session import session

def ours(*_): ...
def look(): print(signal.getsignal(signal.SIGINT) is ours, flush=True)
def made(self, *arguments, **options):
    look()
    make(self, *arguments, **options)

signal.signal(signal.SIGINT, ours)
make, SparkSession.__init__ = SparkSession.__init__, made
with session():
    look()
"""


@pytest.mark.usefixtures("java")
def test_an_interrupt_is_never_pysparks_to_handle() -> None:
    """Not even while a session is made in a context that there is."""
    process = [sys.executable, "-c", LOOK_AT_THE_HANDLER]
    run = subprocess.run(process, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=True)
    assert run.stdout == "True\nTrue\n"


@pytest.mark.usefixtures("java")
def test_an_interrupt_ends_it_and_its_java_without_a_word(world: World) -> None:
    job = start(world)
    family = eventually(lambda: psutil.Process(job.process.pid).children(recursive=True), "Java")
    job.process.send_signal(signal.SIGINT)
    assert ended(job) == (128 + signal.SIGINT, "")
    eventually(lambda: not any(map(alive, family)), "the end of Java")
