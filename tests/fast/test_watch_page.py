"""The page as a document: small, with nothing unescaped, and with an element for each part."""

import gzip
import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.support.facts import (
    MOMENT,
    TOTAL,
    absent,
    counts,
    database,
    dead_receipt,
    facts,
    failed_run,
    finding,
    held_out,
    held_run,
    receipts,
    reconciliation,
    total,
)
from tests.support.markup import Markup
from tests.support.rendering import STOP_REDIS, html_of, rendered
from watch.facts import Agreement, Server
from watch.feed import KEPT, Event, Feed
from watch.history import WINDOW, History
from watch.page import Breakage, Page, Scene
from watch.page.templates import POLICY

SMALL, LARGEST = 8_000, 16_000  # bytes of the page in all, compressed; and of a busy one
ELEMENT, ATTRIBUTE, LINE = "zq-element", "zq-attribute", "zq-line"
RENDERED = "1337"  # what a template would make of one of them
HOSTILE = (
    f"</script></style></title></textarea><{ELEMENT}>{LINE}",
    f"--></svg><{ELEMENT} {ATTRIBUTE}>{LINE}",
    f"\"' {ATTRIBUTE}=\"1\" {ATTRIBUTE}='1' {LINE}=",
    f"`{ATTRIBUTE}={{{{7*191}}}}{{% raw %}}{LINE}",
    f"javascript:{LINE}&lt;{ELEMENT}&gt;&#60;",
    f"red \x00\x1b[31m\x07\x7f\x9b31m {LINE}",
)
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def busy() -> str:
    """A page with as much on it as a busy fleet has."""
    history, feed = History(), Feed()
    for second in range(0, int(WINDOW), 5):
        taken = replace(database().rides, taken=second * 2_000 + second * 7919 % 977)
        late = replace(total(), seconds_behind=second * 7919 % 997 / 1000)
        history.add(facts(second, rides=taken, readers=(late,)), second)
    for number in range(KEPT):
        words = f"consumer{number % 7} healed a gap: {number * 17} rides, {number * 6367}.236 m"
        feed.add([Event(MOMENT + timedelta(seconds=number * 37), "healed", words)])
    readers = tuple(total(f"consumer{name}", counts=counts(gaps_healed=name)) for name in range(9))
    letters = tuple(dead_receipt(ride, reason="status 422: " + "x" * 200) for ride in range(9))
    seen = facts(
        WINDOW,
        readers=readers,
        receipts=receipts(newest_dead=letters, dead=9),
        held_out=tuple(held_out(ride, reason="no: " + "x" * 200) for ride in range(9)),
        reconciliations=tuple(
            reconciliation(number, drift={"consumer1": Decimal("0.001")}) for number in range(9)
        ),
        rollup=replace(database().rollup, minutes_set_aside=7),
        malformed_entries={"total": 9, "rollup": 3},
        completed_run=held_run(
            findings=tuple(finding(about=f"ride {17 * ride} is another") for ride in range(10)),
            open={"rides_changed": 400},
            held=400,
        ),
        failed_run=failed_run(),
        failed_runs=3,
    )
    breakage = Breakage(going_on="The log is gone.")
    page = Page(Scene(STOP_REDIS, breakage, token="the-token"))  # noqa: S106
    return html_of(seen, page=page, feed=feed, history=history)


def test_a_page_is_8_kilobytes_compressed_and_a_busy_one_at_most_16() -> None:
    assert len(gzip.compress(html_of(facts()).encode(), 6)) <= SMALL
    page = busy().encode()
    assert page.count(b"healed a gap") == KEPT
    assert page.count(b'<path class="line"') >= 3
    assert len(gzip.compress(page, 6)) <= LARGEST


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_nothing_gets_in_unescaped(text: str) -> None:
    """Neither into the page nor into the events, which bring parts of it and items of its feed."""
    feed = Feed()
    feed.add([Event(MOMENT, "fault", text)])
    strange = total(text, processes=0, counts=counts(gaps_healed=1), held_out=1)
    lacking = held_out(name=text, type=text, reason=text)
    agreement = Agreement(7, {text: TOTAL, "other": Decimal(1)}, (text,))
    seen = facts(
        readers=(strange,),
        agreement=agreement,
        receipts=receipts(newest_dead=(dead_receipt(reason=text),)),
        held_out=(lacking,),
        malformed_entries={text: 1},
        reconciliations=(reconciliation(drift={text: Decimal(1)}, unrepaired=(text,)),),
        completed_run=held_run(verdicts={text: "held"}, findings=(finding(about=text),)),
        failed_run=failed_run(reason=text),
    )
    seen = absent(seen, 99)
    for each in (seen, replace(seen, redis=Server(False, text), log=None)):
        html = html_of(each, feed=feed)
        read = Markup(html)
        assert read.text.count(LINE) >= 12
        assert not {name for name in read.names if name.startswith((ELEMENT, ATTRIBUTE))}
        for _, attributes in read.elements:
            for name in ("href", "src", "action", "style", "formaction"):
                assert LINE not in (attributes.get(name) or "")
        assert RENDERED not in html
        assert not CONTROLS.search(html)


def test_the_policy_allows_this_style_and_this_script_and_nothing_else() -> None:
    read = Markup(busy())
    for what in ("style", "script"):
        digest = b64encode(hashlib.sha256(read.contents[what].encode()).digest()).decode()
        assert f"{what}-src 'sha256-{digest}'" in POLICY
    assert "default-src 'none'" in POLICY
    assert "unsafe" not in POLICY
    for tag, attributes in read.elements:
        assert "style" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "/").startswith(("/", "#")), tag
    assert "@import" not in read.contents["style"]
    assert "url(" not in read.contents["style"]


def test_each_part_is_an_element_of_the_page_and_ids_are_unique() -> None:
    page, parts = rendered(facts(receipts=receipts(newest_dead=(dead_receipt(),))))
    ids = Markup(page.whole(parts).decode()).ids
    assert len(ids) == len(set(ids))
    # There are no buttons that break it unless this is the demo.
    assert set(parts.parts) - set(ids) == {"breaking", "going-on"}
    assert "breaking" in Markup(busy()).ids
