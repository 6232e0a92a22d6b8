"""How a run is shown: to a person in a terminal and on a page, and to a program."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pytest

from analytics.report.machine import as_json
from analytics.report.page import as_html
from analytics.report.text import as_text
from analytics.result import Compared, Mismatch, PastRun, Result, Tally

TODAY = date(2026, 11, 21)
TOTAL = Decimal("1234567.891")
# 38 digits, which neither a float nor Python's usual decimal context holds.
HUGE = Decimal("98765432109876543210987654321098765.432")
HUGE_WRITTEN = "98,765,432,109,876,543,210,987,654,321,098,765.432"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "$\\frac{$",
]
ESCAPES = "a\x1b[31m\u202e"


def run(*consumers: Compared, **more: Any) -> Result:
    """A run over two days of rides that compared these consumers."""
    return Result(
        started_at=datetime(2026, 11, 21, 3, tzinfo=UTC),
        **{
            "last_ride_id": 4011,
            "total": Tally(3000, TOTAL),
            "new": Tally(1000, Decimal("500000.000")),
            "days": {
                TODAY: Tally(1000, Decimal("500000.000")),
                TODAY - timedelta(1): Tally(2000, Decimal("734567.891")),
            },
            "consumers": list(consumers),
            "verified": 3,
            "seconds": 12.34,
            **more,
        },
    )


def consumer(number: int, drift: str = "0.000", stray: bool = False) -> Compared:
    return Compared(f"consumer{number}", 4011, TOTAL + Decimal(drift), TOTAL, stray)


RIGHT = run(consumer(0), consumer(1))
DRIFTED = run(consumer(0), consumer(1, "0.001"), resets=["consumer1"], reconciliation=9)
CHECKED = run(consumer(0), consumer(1, "-0.001"), repairing=False)
STRAY = run(consumer(0), consumer(1, stray=True))
MISMATCHED = run(
    consumer(0),
    mismatches=[
        Mismatch(1000, 2000, Tally(999, Decimal("10.000")), Tally(1000, Decimal("549.837")))
    ],
)
EMPTY = Result(datetime(2026, 11, 21, 3, tzinfo=UTC))
OUTCOMES = [
    (RIGHT, "consumer1", "0.000", "agrees", "All totals agree."),
    (
        DRIFTED,
        "consumer1",
        "+0.001",
        "wrong: reset requested",
        "1 of 2 consumers was wrong and will be reset.",
    ),
    (
        CHECKED,
        "consumer1",
        "-0.001",
        "wrong: not repaired (--check)",
        "1 of 2 consumers is wrong; nothing was repaired (--check).",
    ),
    (
        STRAY,
        "consumer1",
        "0.000",
        "stands past every ride sent",
        "1 of 2 consumers is wrong; none will be reset.",
    ),
]


class Page(HTMLParser):
    """The elements and the text of a page, as a browser would see them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(("result", "name", "drift", "outcome", "verdict"), OUTCOMES)
def test_a_person_reads_the_drift_what_follows_and_last_the_verdict(
    result: Result, name: str, drift: str, outcome: str, verdict: str
) -> None:
    lines = as_text(result, TODAY).splitlines()
    [row] = [line for line in lines if line.startswith(name)]
    assert row.endswith(f"{drift}  {outcome}")
    assert "4011" in row
    assert lines[-1] == verdict
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(("result", "name", "drift", "outcome", "verdict"), OUTCOMES)
def test_the_page_says_the_same(
    result: Result, name: str, drift: str, outcome: str, verdict: str
) -> None:
    html = as_html(result, [])
    assert f"<h1>{verdict}</h1>" in html
    [row] = re.findall(rf"<tr[^>]*>(?=\s*<th[^>]*><bdi>{name}).*?</tr>", html, re.DOTALL)
    assert f">{drift.replace('-', '−')}</td>" in row  # noqa: RUF001  # a true minus
    assert f">{outcome}</td>" in row
    assert ('class="wrong"' in row) == (outcome != "agrees")


def test_figures_stand_under_each_other() -> None:
    result = run(consumer(0, "-12345.678"), consumer(1)._replace(name="a longer name"))
    [heads, *rows] = as_text(result, TODAY).splitlines()[:3]
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
    said = as_text(MISMATCHED, TODAY)
    assert "rides 1001 to 2000\n" in said
    assert re.search(r"warehouse +999 rides +10\.000 m\n", said)
    assert re.search(r"Postgres +1,000 rides +549\.837 m\n", said)
    assert re.search(r"difference +-1 +-539\.837 m\n", said)
    page = Page(as_html(MISMATCHED, [])).text
    for text in (said, page):
        assert "Postgres is right; no resets were requested." in text
        assert "python -m analytics.reconcile --full" in text
        assert "The warehouse and Postgres disagree: nothing was repaired." in text


def test_the_summary_tells_the_newest_day_and_all_of_history() -> None:
    said = as_text(RIGHT, TODAY)
    assert re.search(r"2026-11-21, today so far \(UTC\) +1,000 rides +500,000\.000 m\n", said)
    assert re.search(r"history, up to ride 4011 +3,000 rides +1,234,567\.891 m\n", said)
    assert "Checked 3 ranges of the warehouse against Postgres; 12.3 seconds in all." in said
    assert "2026-11-21, yesterday (UTC)" in as_text(RIGHT, TODAY + timedelta(1))
    assert "2026-11-21 (UTC)" in as_text(RIGHT, TODAY + timedelta(2))


def test_notes_come_first() -> None:
    noted = run(consumer(0), notes=["The warehouse was new.", "A <b>second</b> note."])
    assert as_text(noted, TODAY).startswith("The warehouse was new.\nA <b>second</b> note.\n\n")
    assert "A <b>second</b> note." in Page(as_html(noted, [])).text


def test_without_consumers_and_rides_that_is_said() -> None:
    for text in (as_text(EMPTY, TODAY), Page(as_html(EMPTY, [])).text):
        assert "No consumers" in text
        assert "No rides yet." in text
        assert "There is no consumer to compare." in text
        assert "agree." not in text


def test_totals_of_38_digits_stay_exact() -> None:
    negative = HUGE.copy_negate()
    for total, exact, drift in ((HUGE, Decimal(0), HUGE), (Decimal(0), HUGE, negative)):
        huge = run(Compared("c", 1, total, exact), total=Tally(1, HUGE))
        sign = "-" if drift < 0 else "+"
        assert f"{sign}{HUGE_WRITTEN}" in as_text(huge, TODAY)
        assert HUGE_WRITTEN in as_html(huge, [])
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
    assert read["days"] == [
        {"day": "2026-11-20", "rides": 2000, "distance": "734567.891"},
        {"day": "2026-11-21", "rides": 1000, "distance": "500000.000"},
    ]
    assert (read["agrees"], read["repairing"], read["reconciliation"]) == (False, True, 9)
    assert read["started_at"] == "2026-11-21T03:00:00Z"
    [mismatch] = json.loads(as_json(MISMATCHED), parse_float=str)["mismatches"]
    assert (mismatch["after"], mismatch["upto"]) == (1000, 2000)
    assert mismatch["difference"] == {"rides": -1, "distance": "-539.837"}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_a_name(name: str) -> None:
    past = [PastRun(1, datetime(2026, 11, 20, 3, tzinfo=UTC), {name: Decimal("0.001")})]
    page = Page(as_html(run(consumer(0)._replace(name=name)), past))
    assert name in page.text
    assert any((attributes.get("aria-label") or "").startswith(name) for _, attributes in page.tags)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}


def test_a_name_moves_no_cursor() -> None:
    named = run(consumer(0)._replace(name=ESCAPES))
    for text in (as_text(named, TODAY), as_html(named, [])):
        assert "a\\x1b[31m\\u202e" in text
        assert not {"\x1b", "\u202e"} & set(text)


def test_the_page_needs_nothing_else_and_is_the_same_each_time() -> None:
    html = as_html(DRIFTED, [])
    page = Page(html)
    assert not {"script", "link", "iframe", "img", "image"} & {tag for tag, _ in page.tags}
    assert not any({"src", "href"} & set(attributes) for _, attributes in page.tags)
    assert not re.search(r"url\((?!#)|@import", html)
    assert "default-src 'none'" in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert {*re.findall(r"#([mp][0-9a-f]{10})\b", html)} <= set(ids)
    assert len(ids) == len(set(ids))
    assert html == as_html(DRIFTED, [])


@pytest.mark.parametrize("days", [1, 30, 200, 1100, 9000])
@pytest.mark.parametrize("consumers", [1, 8])
def test_there_is_a_labelled_chart_for_any_history(days: int, consumers: int) -> None:
    history = {TODAY - timedelta(day): Tally(day + 1, Decimal(day + 1)) for day in range(days)}
    result = run(*(consumer(number) for number in range(consumers)), days=history)
    pictures = [a for tag, a in Page(as_html(result, [])).tags if a.get("role") == "img"]
    assert len(pictures) == 2 + consumers
    assert all(picture["aria-label"] for picture in pictures)


def test_the_drift_chart_counts_this_run_once_and_the_past_ones() -> None:
    past = [
        PastRun(9, datetime(2026, 11, 21, 3, tzinfo=UTC), {"consumer1": Decimal("0.001")}),
        PastRun(8, datetime(2026, 11, 20, 3, tzinfo=UTC), {"consumer1": Decimal("-5.000")}),
        PastRun(7, datetime(2026, 11, 19, 3, tzinfo=UTC), {"consumer1": Decimal(0)}),
        PastRun(6, datetime(2026, 11, 18, 3, tzinfo=UTC), {"long gone": Decimal(1)}),
    ]
    page = Page(as_html(DRIFTED, past))
    assert "Wrong in 2 of 3 runs" in page.text
    assert "Wrong in none of 1 run" in page.text
    assert "long gone" not in page.text
