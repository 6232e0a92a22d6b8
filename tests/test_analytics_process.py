"""The job as a person runs it: its status, its one clear line, and what a kill leaves behind."""

import json
import os
import signal
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import msgspec
import psutil
import pytest

from analytics.ledger import Manifest
from analytics.prerequisites import WANTED
from analytics.reconcile import parse, run
from migrations import downgrade
from rocket_rides.locks import Lock
from rocket_rides.settings import load
from tests.books import MILLIMETRE, Books, tally
from tests.world import PATIENCE, Service, World, eventually, transaction

SPARK_PATIENCE = 120  # seconds: on a busy machine Spark alone takes thirty to start

pytestmark = pytest.mark.xdist_group("spark")

HOLD_THE_LOCK = f"SELECT pg_advisory_lock({Lock.RECONCILIATION:d})"
NO_MORE_RESULTS = "LOCK TABLE reconciliations IN EXCLUSIVE MODE"
READING = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND query LIKE 'COPY%%'"
WAITING = (
    "SELECT count(*) FROM pg_locks WHERE relation = 'reconciliations'::regclass AND NOT granted"
)


def start(world: World, *options: str, **settings: str) -> Service:
    return world.service("analytics.reconcile", *options, **settings)


def ended(job: Service) -> tuple[int, str]:
    """The exit status, and everything that was printed."""
    return job.process.wait(SPARK_PATIENCE), job.output.read_text()


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
    downgrade(world.postgres_url, "0001")
    return {}


def a_file_for_a_warehouse(world: World) -> dict[str, str]:
    (world.folder / "file").touch()
    return {"WAREHOUSE_DIR": str(world.folder / "file")}


def another_databases_warehouse(world: World) -> dict[str, str]:
    run = world.folder / "warehouse" / "rides" / "run=0000001"
    run.mkdir(parents=True)
    theirs = Manifest(1, 0, 5, 1, Decimal(5), {}, [], database_id="1-1", term="")
    (run / "_manifest.json").write_bytes(msgspec.json.encode(theirs))
    return {}


def another_run(world: World) -> dict[str, str]:
    world.connection.execute(HOLD_THE_LOCK)
    return {}


REFUSALS = [
    (no_java, f"{WANTED}; there is none in JAVA_HOME, /nowhere"),
    (an_old_java, "is Java 11"),
    (no_database, "Postgres can't be reached"),
    (an_old_schema, "the database's schema is 0001"),
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


def test_a_name_that_no_file_can_have_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        parse(["--report", "a" * 300])
    assert refusal.value.code == 2
    assert "can't be written: File name too long" in capsys.readouterr().err


@pytest.mark.usefixtures("java")
def test_a_master_that_spark_does_not_know_is_one_line(world: World) -> None:
    status, said = ended(start(world, SPARK_MASTER="nonsense"))
    assert status == 2
    [line] = said.splitlines()
    assert line.startswith("not reconciled: Spark can't start: ")
    assert "Master must" in line


@pytest.mark.usefixtures("java")
def test_an_interrupt_ends_it_and_its_java_without_a_word(world: World) -> None:
    job = start(world)
    family = eventually(lambda: psutil.Process(job.process.pid).children(recursive=True), "Java")
    job.process.send_signal(signal.SIGINT)
    assert ended(job) == (128 + signal.SIGINT, "")
    eventually(lambda: not any(map(alive, family)), "the end of Java")


def test_drift_is_status_1_and_in_every_form_of_the_result(books: Books, tmp_path: Path) -> None:
    ids = books.add("1.5", "2.25")
    books.claim("consumer0", ids[0], drift=MILLIMETRE)
    as_json, as_html = tmp_path / "result.json", tmp_path / "report.html"
    status, said = ended(start(books.world, "--json", str(as_json), "--report", str(as_html)))
    assert status == 1, said
    assert "consumer0" in said
    assert "+0.001" in said
    assert said.splitlines()[-1] == "The only consumer was wrong and will be reset."
    [consumer] = json.loads(as_json.read_text(), parse_float=Decimal)["consumers"]
    assert consumer["drift"] == MILLIMETRE
    assert "<svg" in as_html.read_text()


def test_a_run_repairs_and_the_next_is_status_0(
    books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", books.world.postgres_url)
    monkeypatch.setenv("WAREHOUSE_DIR", str(books.warehouse.folder))
    ids = books.add(1, 2, 3)
    books.claim("consumer0", ids[0], drift=MILLIMETRE)
    assert run(parse([]), load()) == 1
    assert books.caught_up() == books.world.truth
    assert run(parse(["--check"]), load()) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "All totals agree."


def test_a_result_that_cannot_be_written_is_still_the_result(
    books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", books.world.postgres_url)
    monkeypatch.setenv("WAREHOUSE_DIR", str(books.warehouse.folder))
    ids = books.add(1, 2, 3)
    books.claim("consumer0", ids[0], drift=MILLIMETRE)
    assert run(parse(["--json", "/dev/full"]), load()) == 1
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "The only consumer was wrong and will be reset."
    assert told.err == "can't write /dev/full: [Errno 28] No space left on device\n"


def kill(job: Service) -> None:
    """SIGKILL the job itself, and wait until the Java that it had started has noticed."""
    family = psutil.Process(job.process.pid).children(recursive=True)
    os.kill(job.process.pid, signal.SIGKILL)
    job.process.wait(PATIENCE)
    eventually(lambda: not any(map(alive, family)), "the end of Java")


def alive(process: psutil.Process) -> bool:
    """Whether it still does anything; a zombie waits for init alone."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_job_killed_while_it_extracts_is_done_over(books: Books) -> None:
    books.add_many(100_000)
    books.claim("consumer0", 12_345, drift=MILLIMETRE)
    job = start(books.world)
    eventually(
        lambda: books.world.value(READING, books.world.stream), "the extract", SPARK_PATIENCE
    )
    kill(job)
    assert (books.warehouse.folder / ".staging").exists()
    assert books.in_warehouse() == (0, 0, Decimal(0))
    result = books.run()
    assert [consumer.drift for consumer in result.consumers] == [MILLIMETRE]
    assert books.in_warehouse() == books.in_postgres()
    assert not (books.warehouse.folder / ".staging").exists()


def test_a_job_killed_while_it_emits_is_done_over_and_asks_for_one_reset(books: Books) -> None:
    books.add(1, 2, 3)
    books.claim("consumer0", 2, drift=MILLIMETRE)
    with transaction(books.world) as holding:
        holding.execute(NO_MORE_RESULTS)
        job = start(books.world)
        eventually(lambda: books.world.value(WAITING), "the emission", SPARK_PATIENCE)
        kill(job)
    assert books.in_warehouse() == books.in_postgres()
    result = books.run()
    assert (result.new, result.total) == (tally(0, 0), tally(3, 6))
    assert books.world.value("SELECT count(*) FROM resets") == 1
    assert books.world.value("SELECT count(*) FROM reconciliations") == 1
    assert books.caught_up() == books.world.truth
