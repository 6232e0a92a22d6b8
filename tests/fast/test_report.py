"""How a run is shown: in a terminal, on a page, and to a program."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest

from analytics.balances import AGREES, DIFFERS, WAITS
from analytics.findings import CLOSING_CHANGED, CLOSING_WRONG, READER_RECOUNTS, Finding
from analytics.report.machine import as_json
from analytics.report.page import as_html
from analytics.report.sentences import verdict
from analytics.report.text import as_text
from analytics.result import Compared, ComparedClosing, PastRun, Result, Tally
from tests.support.markup import Markup
from tests.support.results import (
    CHECKED,
    DRIFTED,
    EMPTY,
    FILES_CHANGED,
    MISCOUNTED,
    MISMATCHED,
    PROVED,
    RIDES_CHANGED,
    RIGHT,
    STRAY,
    UNPROVED,
    WAITING,
    consumer,
    run,
)
from unified_log.words import MINUS

NIGHT = datetime(2026, 11, 20, 3, tzinfo=UTC)
# 38 digits, which neither a float nor Python's usual decimal context holds.
HUGE = Decimal("98765432109876543210987654321098765.432")
HUGE_WRITTEN = "98,765,432,109,876,543,210,987,654,321,098,765.432"
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}"]


def on_page(result: Result) -> str:
    return Markup(as_html(result, [])).text


for_a_person = pytest.mark.parametrize("told", [as_text, on_page], ids=["terminal", "page"])


@pytest.mark.parametrize(
    ("result", "drift", "outcome"),
    [
        (RIGHT, "0.000", "agrees"),
        (DRIFTED, "+0.001", "wrong: reset requested"),
        (CHECKED, "-0.001", "wrong: not repaired (--check)"),
        (STRAY, "0.000", "stands past every record sent"),
        (WAITING, "+0.001", "wrong: held"),
        (MISCOUNTED, "0.000", "+1 ride: reset requested"),
    ],
)
def test_a_person_reads_the_drift_what_follows_and_the_verdict(
    result: Result, drift: str, outcome: str
) -> None:
    lines = as_text(result).splitlines()
    [line] = [line for line in lines if line.startswith("consumer1")]
    assert re.search(rf"\b4011\b.*{re.escape(drift)}  {re.escape(outcome)}$", line)
    assert lines[-1] == verdict(result)
    assert max(map(len, lines)) <= 100
    html = as_html(result, [])
    assert f"<h1>{verdict(result)}</h1>" in html
    [row] = re.findall(r"<tr[^>]*>(?=\s*<th[^>]*><bdi>consumer1).*?</tr>", html, re.DOTALL)
    assert f">{drift.replace('-', MINUS)}</td>" in row
    assert f">{outcome}</td>" in row
    assert ('class="wrong"' in row) == (outcome != "agrees")


@for_a_person
def test_a_reader_that_recounts_is_told_to_be_under_way(told: Callable[[Result], str]) -> None:
    recounts = Finding(READER_RECOUNTS, "total consumer1 recounts: a later run compares it")
    assert f"Under way: {recounts.about}" in told(replace(MISMATCHED, findings=[recounts]))


@for_a_person
def test_what_is_held_is_told_ride_by_ride_with_the_ways_out(told: Callable[[Result], str]) -> None:
    said = told(MISMATCHED)
    assert "Held: Postgres was changed: 3 rides of 1001 to 2000" in said
    there = "2026-11-20 09:30:00+00:00"
    for line in (
        f"ride 1007: Postgres no such ride; warehouse 539.837 m at {there}\n",
        f"ride 1008: Postgres 7.000 m at {there}; warehouse 539.837 m at {there}\n",
        "and 1 more\n",
        "python -m analytics.approve 12 --reason '...'",
        "python -m analytics.approve 12 --put-back",
        "Nothing that is held was changed, and the warehouse is as it was.",
        "if Postgres is right:\n",
        "if the warehouse is right, this prints the rides as they were:\n",
        "1 finding is held until somebody decides; all totals agree.",
    ):
        assert line in said


@for_a_person
def test_what_is_repaired_needs_nobodys_approval(told: Callable[[Result], str]) -> None:
    said = told(run(consumer(0), findings=[FILES_CHANGED], published=True))
    assert "the warehouse was changed: ride 7" in said
    assert "approve" not in said
    held = replace(MISMATCHED, run=None, findings=[without_rides(RIDES_CHANGED)])
    assert "analytics.approve RUN --reason '...'  # of a run without --check" in told(held)
    assert "--put-back" not in told(held)
    said = told(replace(held, published=True))
    assert "Nothing that is held was changed. Find out who did this. Then,\n" in said


def without_rides(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, rides=())


def test_a_mismatch_is_told_in_figures() -> None:
    said = as_text(MISMATCHED)
    assert re.search(r"rides 1001 to 2000\n", said)
    assert re.search(r"warehouse +1,000 rides +549\.837 m\n", said)
    assert re.search(r"Postgres +999 rides +10\.000 m\n", said)
    assert re.search(r"difference +\+1 +\+539\.837 m\n", said)


def test_the_summary_tells_all_of_history() -> None:
    said = as_text(RIGHT)
    assert re.search(r"new to the warehouse +1,000 rides +500,000\.000 m\n", said)
    assert re.search(r"history, up to position 4011 +3,000 rides +1,234,567\.891 m\n", said)
    assert "Compared 250,000 old rides with Postgres, in 3 blocks; 12.3 seconds in all." in said


@for_a_person
def test_notes_are_told_as_they_are(told: Callable[[Result], str]) -> None:
    assert "A <b>second</b> note." in told(run(consumer(0), notes=["A <b>second</b> note."]))


@for_a_person
def test_without_consumers_and_rides_that_is_said(told: Callable[[Result], str]) -> None:
    said = told(EMPTY)
    for sentence in ("No consumers", "No rides yet.", "There is no consumer to compare."):
        assert sentence in said
    assert "agree." not in said


@pytest.mark.parametrize(
    ("total", "exact", "drift"),
    [(HUGE, Decimal(0), HUGE), (Decimal(0), HUGE, HUGE.copy_negate())],
)
def test_totals_of_38_digits_stay_exact(total: Decimal, exact: Decimal, drift: Decimal) -> None:
    huge = run(Compared("c", 1, total, exact), total=Tally(1, HUGE))
    assert f"{'-' if drift < 0 else '+'}{HUGE_WRITTEN}" in as_text(huge)
    assert f"{MINUS if drift < 0 else '+'}{HUGE_WRITTEN}" in on_page(huge)
    read = json.loads(as_json(huge), parse_float=Decimal)
    assert read["total"]["distance"] == HUGE
    assert read["consumers"][0]["drift"] == drift


def test_a_program_reads_numbers_under_names_that_stay() -> None:
    read = json.loads(as_json(DRIFTED), parse_float=str)  # a number's own digits
    assert read["consumers"][1] == {
        "name": "consumer1",
        "position": 4011,
        "total_distance": "1234567.892",
        "exact_distance": "1234567.891",
        "drift": "0.001",
        "stray": False,
        "wrong": True,
        "reset": True,
        "rides": 3000,
        "exact_rides": 3000,
        "held_out_rides": 0,
        "held_out_distance": 0,
        "first_held_out": None,
        "recounts": False,
    }
    assert read["new"] == {"rides": 1000, "distance": "500000.000"}
    assert (read["agrees"], read["repairing"], read["reconciliation"]) == (False, True, 9)
    assert read["started_at"] == "2026-11-21T03:00:00Z"


def holding_out(one: Compared) -> Compared:
    return one._replace(held_out_rides=2, held_out_distance=Decimal("12.5"), first_held_out=7)


def test_what_is_held_out_is_named_and_the_rest_is_exact() -> None:
    lacking = holding_out(consumer(0, "-12.5")._replace(rides=2998))
    seen = run(lacking, consumer(1))
    assert seen.agrees
    told = as_text(seen)
    assert "agrees; held out: 2 rides, 12.500 m" in told
    assert told.rstrip().endswith("All totals agree, but for what is held out.")
    # What it has counted, too, it does not lack.
    for counted in (lacking._replace(rides=3000), holding_out(consumer(0))):
        assert counted.wrong
        assert not run(counted).agrees


def test_a_total_that_recounts_is_not_called_wrong() -> None:
    recounting = consumer(1, "-539.837")._replace(recounts=True)
    assert not recounting.wrong
    told = as_text(run(consumer(0), recounting))
    assert told.rstrip().endswith("1 of 2 totals recounts.")
    [line] = [line for line in told.splitlines() if line.startswith("consumer1")]
    assert line.endswith("recounts")
    # One that is right meanwhile is right.
    assert "All totals agree." in as_text(run(consumer(0), consumer(1)._replace(recounts=True)))


def test_a_program_reads_what_was_found_and_the_rides_as_both_sides_have_them() -> None:
    read = json.loads(as_json(replace(MISMATCHED, verdicts={"warehouse": "held"})), parse_float=str)
    assert (read["run"], read["status"], read["agrees"]) == (12, "held", False)
    assert read["verdicts"] == {"warehouse": "held"}
    [mismatch] = read["mismatches"]
    assert (mismatch["after"], mismatch["upto"]) == (1000, 2000)
    assert mismatch["difference"] == {"rides": 1, "distance": "539.837"}
    [finding] = read["findings"]
    rides = finding.pop("rides")
    assert finding == {
        "kind": "rides_changed",
        "part": "warehouse",
        "held": True,
        "about": RIDES_CHANGED.about,
        "key": "1000 abc",
        "after": 1000,
        "upto": 2000,
        "differing": 3,
    }
    taken = {"created_at": "2026-11-20T09:30:00Z", "distance": "539.837"}
    assert rides == [
        {"id": 1007, "postgres": None, "warehouse": taken},
        {"id": 1008, "postgres": taken | {"distance": 7}, "warehouse": taken},
    ]


@for_a_person
def test_a_name_moves_no_cursor(told: Callable[[Result], str]) -> None:
    said = told(run(consumer(0)._replace(name="a\x1b[31m\u202e")))
    assert "a\\x1b[31m\\u202e" in said
    assert not {"\x1b", "\u202e"} & set(said)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_a_name(name: str) -> None:
    page = Markup(as_html(run(consumer(0)._replace(name=name)), []))
    assert name in page.text
    assert not {"script", "img"} & {tag for tag, _ in page.elements}


def test_the_page_needs_nothing_else_and_is_the_same_each_time() -> None:
    html = as_html(DRIFTED, [])
    page = Markup(html)
    assert not {"script", "link", "iframe", "img", "image"} & {tag for tag, _ in page.elements}
    assert not any({"src", "href"} & set(attributes) for _, attributes in page.elements)
    assert not re.search(r"url\((?!#)|@import", html)
    assert "default-src 'none'" in html
    assert html == as_html(DRIFTED, [])


def test_the_page_names_what_is_wrong_beside_the_totals() -> None:
    said = on_page(UNPROVED)
    assert "12 without an outcome: to be delivered, 1 without a ride" in said
    assert "2026-11-21 02:07 UTC: 2 rides, 2.001 m; its rides: 2 rides, 2.000 m" in said
    assert "7, 9 and 10 more" in said
    assert "without an outcome" not in on_page(PROVED)


def test_the_page_shows_the_verdicts_of_the_nights() -> None:
    verdicts = {"totals": "agreed", "readers": "wrong", "warehouse": "held"}
    past = [PastRun(2, NIGHT, "held", verdicts), PastRun(1, NIGHT)]
    told = " ".join(Markup(as_html(PROVED, past)).text.split())
    second, first = (f"{number}, 2026-11-20 03:00 UTC" for number in (2, 1))
    assert f"{second} agrees wrong held not compared" in told
    assert f"{first} not compared" in told
    assert "Run by run" not in as_html(PROVED, [])


ONE = ComparedClosing(1, 2000, 1500, Decimal("700.5"), NIGHT, AGREES)
TWO = ComparedClosing(2, 3000, 2500, Decimal("900.125"), NIGHT, DIFFERS)
CLOSING_FOUND = Finding(CLOSING_WRONG, "closing 2 says 2,500 rides", True, "2 says 2,500 rides")


@for_a_person
def test_closings_are_told_with_their_sums_and_what_became_of_them(
    told: Callable[[Result], str],
) -> None:
    said = " ".join(told(run(consumer(0), closings=[ONE], proves_from=ONE)).split())
    assert "700.500" in said
    assert "2026-11-20 03:00 UTC agrees" in said
    assert "1 closing agrees; the totals are proven from closing 1, position 2,000, on." in said
    result = run(consumer(0), run=12, closings=[ONE, TWO], findings=[CLOSING_FOUND])
    said = " ".join(told(result).split())
    assert "2026-11-20 03:00 UTC differs" in said
    assert "1 of 2 closings agree; the totals are proven from the first ride on." in said
    assert "python -m analytics.close --reopen 2 --reason '...'" in said
    assert "analytics.approve" not in said
    both = [CLOSING_FOUND, Finding(CLOSING_WRONG, "closing 1 says", True, "1 says")]
    assert "--reopen 1 " in told(run(consumer(0), run=12, closings=[ONE, TWO], findings=both))


@for_a_person
def test_who_approves_rides_below_closings_is_told_which_to_reopen(
    told: Callable[[Result], str],
) -> None:
    waiting = [each._replace(outcome=WAITS) for each in (ONE, TWO)]
    said = told(replace(MISMATCHED, closings=waiting))
    assert re.search(
        r"if Postgres is right:\n.*approve 12 --reason.*\n.*close --reopen 1 .* # once a run",
        said,
    )


@for_a_person
def test_a_closing_that_is_gone_can_not_be_reopened(told: Callable[[Result], str]) -> None:
    gone = Finding(CLOSING_CHANGED, "closing 3 is gone", True, "3 is gone ")
    said = told(run(consumer(0), run=12, closings=[ONE, TWO], findings=[gone]))
    assert "python -m analytics.approve 12" in said
    assert "analytics.close" not in said


def test_a_program_reads_closings() -> None:
    read = json.loads(as_json(run(closings=[ONE, TWO], proves_from=ONE)), parse_float=Decimal)
    assert [each["outcome"] for each in read["closings"]] == [AGREES, DIFFERS]
    assert read["closings"][1]["distance"] == Decimal("900.125")
    assert read["proves_from"] == read["closings"][0]
