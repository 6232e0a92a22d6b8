"""The job as a person runs it: its status and its words, and what an interrupt leaves behind.

A whole run beside a fleet's processes is in `test_foreign_settings.py`.
"""

import json
import signal
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from analytics.ledger import Ledger, Owner
from analytics.prerequisites import WANTED
from analytics.warehouse import Warehouse
from rocket_rides import telemetry
from rocket_rides.locks import Lock
from tests.support.books import MILLIMETRE, Books, tally
from tests.support.collector import Collector
from tests.support.jobs import SPARK_PATIENCE, reconcile
from tests.support.object_stores import root_of
from tests.support.world import World, eventually, transaction

HOLD_THE_LOCK = f"SELECT pg_advisory_lock({Lock.RECONCILIATION:d})"
NO_MORE_RESULTS = "LOCK TABLE reconciliations IN EXCLUSIVE MODE"
WAITING = (
    "SELECT count(*) FROM pg_locks WHERE relation = 'reconciliations'::regclass AND NOT granted"
)


def no_change(_world: World) -> None:
    pass


def an_old_java(world: World) -> None:
    java = world.folder / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)


def another_databases_warehouse(world: World) -> None:
    warehouse = Warehouse(world.folder / "warehouse")
    warehouse.make_ready()
    theirs = Owner(5, database_id="1-1", term="")
    warehouse.publish([], warehouse.note(0, Ledger(), theirs))


REFUSALS: list[tuple[Callable[[World], object], dict[str, str], str]] = [
    (no_change, {"JAVA_HOME": "/nowhere"}, f"{WANTED}; there is none in JAVA_HOME, /nowhere"),
    (an_old_java, {"JAVA_HOME": "{folder}/old"}, "is Java 11"),
    (no_change, {"DATABASE_URL": "postgresql:///none?host={folder}"}, "Postgres can't be reached"),
    (
        lambda world: world.connection.execute("DROP TABLE schema_versions"),
        {},
        "the database's schema is of an earlier design",
    ),
    (
        lambda world: (world.folder / "file").touch(),
        {"WAREHOUSE_DIR": "{folder}/file"},
        "can't be written to",
    ),
    (lambda world: world.connection.execute(HOLD_THE_LOCK), {}, "another run is in progress"),
    (another_databases_warehouse, {}, "another database: set another WAREHOUSE_DIR"),
]


def no_spark(_master: str) -> NoReturn:
    raise AssertionError("Spark was started")


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize(("prepare", "given", "reason"), REFUSALS)
def test_what_keeps_the_job_from_running_is_status_2_and_one_line_before_spark_starts(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[World], object],
    given: dict[str, str],
    reason: str,
) -> None:
    monkeypatch.setattr("analytics.session.session", no_spark)
    prepare(world)
    settings = {name: value.format(folder=world.folder) for name, value in given.items()}
    run = reconcile(world, **settings)
    assert (run.status, run.said) == (2, "")
    [line] = run.wrong.splitlines()
    assert line.startswith("not reconciled: ")
    assert reason in line


def test_a_file_that_could_not_be_written_is_refused_before_anything_is_done(world: World) -> None:
    run = reconcile(world, "--json", "/nowhere/result.json")
    assert run.status == 2
    assert "/nowhere/result.json can't be written" in run.wrong


def alive(process: psutil.Process) -> bool:
    """Whether the process runs; a zombie only waits for init."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_an_interrupt_ends_it_and_its_java_without_a_word_and_its_work_is_done_over(
    books: Books, bucket: Path
) -> None:
    """As a kill does, in an object store: no ride counts there before its result can."""
    books = Books(books.world, books.spark, root_of(bucket), bucket)
    books.world.send(1, 2, 3)
    books.claim("consumer0", 2, drift=MILLIMETRE)
    books.claim("witness", 3)
    with transaction(books.world) as holding:
        holding.execute(NO_MORE_RESULTS)
        job = books.world.service("analytics.reconcile", WAREHOUSE_DIR=books.root)
        eventually(lambda: books.world.value(WAITING), "the emission", SPARK_PATIENCE)
        process = psutil.Process(job.process.pid)
        family = process.children(recursive=True)
        job.interrupt()
        assert job.ends(SPARK_PATIENCE) == 128 + signal.SIGINT
        assert job.output.read_text() == ""
        eventually(lambda: not any(map(alive, family)), "the end of Java")
    assert [*books.rides_on_disk.glob("day=*/*.parquet")]
    assert books.in_warehouse() == (0, 0, Decimal(0))
    result = books.run()
    assert (result.new, result.total) == (tally(3, 6), tally(3, 6))
    assert books.in_warehouse() == books.in_postgres()
    assert books.world.value("SELECT count(*) FROM resets") == 1
    assert books.caught_up() == books.world.truth


def test_drift_is_status_1_in_every_form_of_the_result_and_after_the_repair_0(
    books: Books, tmp_path: Path
) -> None:
    books.world.send(1, 2, 3)
    books.claim("consumer0", 1, drift=MILLIMETRE)
    books.claim("witness", 3)
    unwritten = reconcile(books.world, "--check", "--json", "/dev/full")
    assert (unwritten.status, "+0.001" in unwritten.said) == (1, True)
    assert unwritten.wrong == "can't write /dev/full: [Errno 28] No space left on device\n"
    as_json, as_html = tmp_path / "result.json", tmp_path / "report.html"
    drifted = reconcile(books.world, "--json", str(as_json), "--report", str(as_html))
    assert (drifted.status, drifted.wrong) == (1, "")
    assert "+0.001" in drifted.said
    assert drifted.said.splitlines()[-1] == "1 of 2 consumers was wrong and will be reset."
    result = json.loads(as_json.read_text(), parse_float=Decimal)
    assert (result["last_ride_id"], result["total"]["distance"]) == books.world.truth
    [consumer, _] = result["consumers"]
    assert consumer["drift"] == MILLIMETRE
    assert "+0.001" in as_html.read_text()
    assert books.caught_up() == books.world.truth
    repaired = reconcile(books.world, "--check")
    assert repaired.status == 0
    assert repaired.said.splitlines()[-1] == "All totals agree."


def test_a_night_is_a_trace_with_its_stages(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_exporter", None)  # again, afterwards
    books.world.send(1, 2, 3)
    with Collector() as collector:
        assert reconcile(books.world, **collector.settings).status == 0
        telemetry.end()
        found = collector.spans("-reconciler")
    [night] = [span for span in found if not span.parent]
    stages = {span.name for span in found if span.parent == night.id}
    assert night.name == "reconcile"
    assert stages == {
        "freeze", "extract and compare", "prove", "emit", "tidy", "report"
    }  # fmt: skip
    assert {span.trace for span in found} == {night.trace}
