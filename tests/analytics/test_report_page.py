"""The page that shows a run, with its charts."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser

import pytest

from analytics.report.page import as_html
from analytics.result import Compared, PastRun, Result, Tally
from tests.support.results import (
    DRIFTED,
    EMPTY,
    ESCAPES,
    HUGE,
    HUGE_WRITTEN,
    MISMATCHED,
    NOTES,
    OUTCOMES,
    PROVED,
    UNPROVED,
    consumer,
    moves_no_cursor,
    run,
    tells_that_there_was_nothing,
    tells_the_way_out,
)

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "$\\frac{$",
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
def test_the_page_says_the_same(
    result: Result, name: str, drift: str, outcome: str, verdict: str
) -> None:
    html = as_html(result, [])
    assert f"<h1>{verdict}</h1>" in html
    [row] = re.findall(rf"<tr[^>]*>(?=\s*<th[^>]*><bdi>{name}).*?</tr>", html, re.DOTALL)
    assert f">{drift.replace('-', '−')}</td>" in row  # noqa: RUF001  # a true minus
    assert f">{outcome}</td>" in row
    assert ('class="wrong"' in row) == (outcome != "agrees")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_a_name(name: str) -> None:
    past = [PastRun(1, datetime(2026, 11, 20, 3, tzinfo=UTC), {name: Decimal("0.001")})]
    page = Page(as_html(run(consumer(0)._replace(name=name)), past))
    assert name in page.text
    assert any((attributes.get("aria-label") or "").startswith(name) for _, attributes in page.tags)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}


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


@pytest.mark.parametrize("nights", [0, 1, 30, 366])
@pytest.mark.parametrize("consumers", [1, 8])
def test_there_is_a_labelled_chart_for_any_history(nights: int, consumers: int) -> None:
    first = datetime(2026, 11, 20, 3, tzinfo=UTC)
    past = [
        PastRun(number, first - timedelta(number), {"consumer0": Decimal(10) ** (number % 30)})
        for number in range(1, nights + 1)
    ]
    result = run(*(consumer(number) for number in range(consumers)))
    pictures = [a for tag, a in Page(as_html(result, past)).tags if a.get("role") == "img"]
    assert len(pictures) == consumers
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


def test_a_run_that_found_a_stray_checkpoint_found_something_wrong() -> None:
    """Although the total may have been right."""
    at, right = datetime(2026, 11, 21, 3, tzinfo=UTC), {"consumer1": Decimal(0)}
    page = Page(as_html(run(consumer(0)), [PastRun(1, at, right, strays=frozenset(right))]))
    _, _, nights = page.text.rpartition("Night by night")
    assert "wrong" in (told := nights.partition("Drift, run by run")[0])
    assert "agrees" not in told


def test_a_mismatch_is_on_the_page_with_the_way_out() -> None:
    tells_the_way_out(Page(as_html(MISMATCHED, [])).text)


def test_notes_are_on_the_page() -> None:
    assert NOTES[1] in Page(as_html(run(consumer(0), notes=NOTES), [])).text


def test_without_consumers_and_rides_the_page_says_so() -> None:
    tells_that_there_was_nothing(Page(as_html(EMPTY, [])).text)


def test_totals_of_38_digits_stay_exact_on_the_page() -> None:
    for total, exact in ((HUGE, Decimal(0)), (Decimal(0), HUGE)):
        huge = run(Compared("c", 1, total, exact), total=Tally(1, HUGE))
        assert HUGE_WRITTEN in as_html(huge, [])


def test_a_name_on_the_page_moves_no_cursor() -> None:
    moves_no_cursor(as_html(run(consumer(0)._replace(name=ESCAPES)), []))


def test_the_page_names_what_is_wrong_beside_the_totals() -> None:
    page = Page(as_html(UNPROVED, []))
    assert "12 without an outcome: to be delivered, 1 of no ride" in page.text
    assert "2026-11-21 02:07 UTC: 2 rides, 2.001 m; its rides: 2 rides, 2.000 m" in page.text
    assert "7, 9 and 10 more" in page.text
    assert "without an outcome" not in Page(as_html(PROVED, [])).text


def test_the_page_shows_the_verdicts_of_the_nights() -> None:
    at = datetime(2026, 11, 20, 3, tzinfo=UTC)
    past = [
        PastRun(1, at, {}),
        PastRun(2, at, {"consumer0": Decimal(0)}, {"rollup": True, "receipts": False}),
    ]
    html = as_html(PROVED, past)
    told = " ".join(Page(html).text.split())
    first, second = (f"{number}, 2026-11-20 03:00 UTC" for number in (1, 2))
    assert f"{second} agrees agrees wrong not compared" in told
    assert f"{first} not compared not compared not compared not compared" in told
    assert "Night by night" not in as_html(PROVED, [])
