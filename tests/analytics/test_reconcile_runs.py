"""The job as a person runs it: its status, its result, and what a kill leaves behind.

A whole run beside a fleet is in `tests/fleet/beside/test_breaking.py`.
"""

import json
import os
import signal
from decimal import Decimal
from io import BytesIO, TextIOWrapper
from pathlib import Path

import psutil
import pytest

from analytics.reconcile import main, parse, run
from rocket_rides.settings import load
from tests.support.books import MILLIMETRE, Books, tally
from tests.support.jobs import SPARK_PATIENCE, alive, start
from tests.support.world import PATIENCE, Service, eventually, transaction

NO_MORE_RESULTS = "LOCK TABLE reconciliations IN EXCLUSIVE MODE"
READING = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND query LIKE 'COPY%%'"
WAITING = (
    "SELECT count(*) FROM pg_locks WHERE relation = 'reconciliations'::regclass AND NOT granted"
)


@pytest.fixture
def drifted(books: Books, monkeypatch: pytest.MonkeyPatch) -> Books:
    """A consumer that is a millimetre off; a run in this process finds it by the environment."""
    monkeypatch.setenv("DATABASE_URL", books.world.postgres_url)
    monkeypatch.setenv("WAREHOUSE_DIR", str(books.warehouse.folder))
    ids = books.add(1, 2, 3)
    books.claim("consumer0", ids[0], drift=MILLIMETRE)
    return books


@pytest.mark.usefixtures("drifted")
def test_drift_is_status_1_and_in_every_form_of_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    as_json, as_html = tmp_path / "result.json", tmp_path / "report.html"
    assert run(parse(["--json", str(as_json), "--report", str(as_html)]), load()) == 1
    said, wrong = capsys.readouterr()
    assert wrong == ""
    assert "consumer0" in said
    assert "+0.001" in said
    assert said.splitlines()[-1] == "The only consumer was wrong and will be reset."
    [consumer] = json.loads(as_json.read_text(), parse_float=Decimal)["consumers"]
    assert consumer["drift"] == MILLIMETRE
    assert "+0.001" in as_html.read_text()


def test_a_run_repairs_and_the_next_is_status_0(
    drifted: Books, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(parse([]), load()) == 1
    assert drifted.caught_up() == drifted.world.truth
    assert run(parse(["--check"]), load()) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "All totals agree."


@pytest.mark.usefixtures("drifted")
def test_a_result_that_cannot_be_written_is_still_the_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(parse(["--json", "/dev/full"]), load()) == 1
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "The only consumer was wrong and will be reset."
    assert told.err == "can't write /dev/full: [Errno 28] No space left on device\n"


def test_a_name_in_any_script_is_told_in_any_encoding(
    drifted: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    drifted.claim("\u6d88\u8d39\u8005", 1, drift=MILLIMETRE)
    told, ours = BytesIO(), signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("sys.stdout", TextIOWrapper(told, "ascii"))
    monkeypatch.setattr("sys.argv", ["reconcile", "--check"])
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        signal.signal(signal.SIGINT, ours)
    assert end.value.code == 1
    assert b"\\u6d88\\u8d39\\u8005" in told.getvalue()


def kill(job: Service) -> None:
    """SIGKILL the job itself, and wait until the Java that it had started has noticed."""
    family = psutil.Process(job.process.pid).children(recursive=True)
    os.kill(job.process.pid, signal.SIGKILL)
    job.process.wait(PATIENCE)
    eventually(lambda: not any(map(alive, family)), "the end of Java")


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
    assert books.in_warehouse() == (0, 0, Decimal(0))  # no ride counts in it before its result can
    result = books.run()
    assert (result.new, result.total) == (tally(3, 6), tally(3, 6))
    assert books.in_warehouse() == books.in_postgres()
    assert books.world.value("SELECT count(*) FROM resets") == 1
    assert books.world.value("SELECT count(*) FROM reconciliations") == 1
    assert books.caught_up() == books.world.truth
