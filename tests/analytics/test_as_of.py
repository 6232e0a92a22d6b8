"""`--as-of`: an earlier night is told again as it was, from the table's log alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from analytics.as_of import as_of
from analytics.reconcile import COULD_NOT_RUN, main
from analytics.report.text import as_text
from analytics.result import Result
from analytics.warehouse import kept
from rocket_rides.settings import PROJECT
from tests.support.books import MILLIMETRE, Books
from tests.support.results import CHECKED, DRIFTED, EMPTY, MISMATCHED, RIGHT, STRAY, TODAY


@pytest.mark.parametrize("result", [RIGHT, DRIFTED, CHECKED, STRAY, MISMATCHED, EMPTY])
def test_what_is_kept_of_a_result_is_all_that_is_told_of_it(result: Result) -> None:
    again = msgspec.json.decode(kept(result), type=Result)
    assert as_text(again, TODAY) == as_text(result, TODAY)


def test_of_all_days_only_the_newest_is_kept() -> None:
    assert set(msgspec.json.decode(kept(RIGHT), type=Result).days) == {TODAY}


def but_for_the_time(told: str) -> str:
    """It still ran while the table was written."""
    return re.sub(r"[\d.]+ seconds in all", "... seconds in all", told)


def test_a_night_is_told_again_by_its_id_and_by_its_date(
    books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    books.add(1, 2, 3)
    books.claim("consumer0", 2, drift=MILLIMETRE)
    first = books.run()
    books.caught_up()
    books.add(4)
    second = books.run(full=True)
    told = [
        but_for_the_time(as_text(result, result.started_at.date())) for result in (first, second)
    ]
    assert "wrong: reset requested" in told[0]
    assert "All totals agree." in told[1]

    table = books.warehouse.table
    assert but_for_the_time(as_of(table, str(first.reconciliation))) == told[0]
    assert but_for_the_time(as_of(table, str(second.reconciliation))) == told[1]

    monkeypatch.setenv("WAREHOUSE_DIR", str(books.warehouse.folder))
    monkeypatch.setenv("DATABASE_URL", "postgresql:///none?host=/nowhere")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("sys.argv", ["reconcile", "--as-of", str(second.started_at.date())])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert but_for_the_time(capsys.readouterr().out) == told[1]


def test_a_name_in_any_script_is_told_in_any_encoding(books: Books) -> None:
    books.add(1)
    books.claim("\u6d88\u8d39\u8005", 1, drift=MILLIMETRE)
    night = str(books.run().reconciliation)
    told = subprocess.check_output(
        [sys.executable, "-m", "analytics.reconcile", "--as-of", night],
        cwd=PROJECT,
        env=os.environ
        | {"WAREHOUSE_DIR": str(books.warehouse.folder), "PYTHONIOENCODING": "ascii"},
    )
    assert b"\\u6d88\\u8d39\\u8005" in told


def test_an_unknown_night_is_one_line_and_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WAREHOUSE_DIR", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["reconcile", "--as-of", "1999-01-01"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == COULD_NOT_RUN
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("has no night 1999-01-01")
