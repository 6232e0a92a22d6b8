"""How a run is shown in a terminal, and to a program."""

import json
import re
from decimal import Decimal

import pytest

from analytics.report.machine import as_json
from analytics.report.text import as_text
from analytics.result import Compared, Result, Tally
from tests.support.results import (
    DRIFTED,
    EMPTY,
    ESCAPES,
    HUGE,
    HUGE_WRITTEN,
    MISMATCHED,
    NOTES,
    OUTCOMES,
    RIGHT,
    consumer,
    moves_no_cursor,
    run,
    tells_that_there_was_nothing,
    tells_the_way_out,
)


@pytest.mark.parametrize(("result", "name", "drift", "outcome", "verdict"), OUTCOMES)
def test_a_person_reads_the_drift_what_follows_and_last_the_verdict(
    result: Result, name: str, drift: str, outcome: str, verdict: str
) -> None:
    lines = as_text(result).splitlines()
    [row] = [line for line in lines if line.startswith(name)]
    assert row.endswith(f"{drift}  {outcome}")
    assert "4011" in row
    assert lines[-1] == verdict
    assert max(map(len, lines)) <= 100


def test_figures_stand_under_each_other() -> None:
    result = run(consumer(0, "-12345.678"), consumer(1)._replace(name="a longer name"))
    [heads, *rows] = as_text(result).splitlines()[:3]
    for head, first, second in (
        ("at ride", "4011", "4011"),
        ("its total, m", "1,222,222.213", "1,234,567.891"),
        ("drift, m", "-12,345.678", "0.000"),
    ):
        ends = {
            row.index(text) + len(text) for row, text in zip(rows, (first, second), strict=True)
        }
        assert ends == {heads.index(head) + len(head)}


def test_a_mismatch_names_its_rides_both_sides_and_the_way_out() -> None:
    said = as_text(MISMATCHED)
    assert "rides 1001 to 2000\n" in said
    assert re.search(r"warehouse +999 rides +10\.000 m\n", said)
    assert re.search(r"Postgres +1,000 rides +549\.837 m\n", said)
    assert re.search(r"difference +-1 +-539\.837 m\n", said)
    tells_the_way_out(said)


def test_the_summary_tells_all_of_history() -> None:
    said = as_text(RIGHT)
    assert re.search(r"new to the warehouse +1,000 rides +500,000\.000 m\n", said)
    assert re.search(r"history, up to ride 4011 +3,000 rides +1,234,567\.891 m\n", said)
    assert "Checked 3 ranges of the warehouse against Postgres; 12.3 seconds in all." in said


def test_notes_come_first() -> None:
    noted = run(consumer(0), notes=NOTES)
    assert as_text(noted).startswith("The warehouse was new.\nA <b>second</b> note.\n\n")


def test_without_consumers_and_rides_that_is_said() -> None:
    tells_that_there_was_nothing(as_text(EMPTY))


def test_totals_of_38_digits_stay_exact() -> None:
    negative = HUGE.copy_negate()
    for total, exact, drift in ((HUGE, Decimal(0), HUGE), (Decimal(0), HUGE, negative)):
        huge = run(Compared("c", 1, total, exact), total=Tally(1, HUGE))
        sign = "-" if drift < 0 else "+"
        assert f"{sign}{HUGE_WRITTEN}" in as_text(huge)
        read = json.loads(as_json(huge), parse_float=Decimal)
        assert read["total"]["distance"] == HUGE
        assert read["consumers"][0]["drift"] == drift


def test_a_program_reads_numbers_under_names_that_stay() -> None:
    read = json.loads(as_json(DRIFTED), parse_float=str)  # a number's own digits
    assert read["consumers"][1] == {
        "name": "consumer1",
        "last_ride_id": 4011,
        "total_distance": "1234567.892",
        "exact_distance": "1234567.891",
        "drift": "0.001",
        "stray": False,
        "wrong": True,
        "reset": True,
    }
    assert read["new"] == {"rides": 1000, "distance": "500000.000"}
    assert (read["agrees"], read["repairing"], read["reconciliation"]) == (False, True, 9)
    assert read["started_at"] == "2026-11-21T03:00:00Z"
    [mismatch] = json.loads(as_json(MISMATCHED), parse_float=str)["mismatches"]
    assert (mismatch["after"], mismatch["upto"]) == (1000, 2000)
    assert mismatch["difference"] == {"rides": -1, "distance": "-539.837"}


def test_a_name_moves_no_cursor() -> None:
    named = run(consumer(0)._replace(name=ESCAPES))
    moves_no_cursor(as_text(named))
