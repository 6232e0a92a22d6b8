"""The page, rendered from made-up facts."""

import gzip
import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from demo.breaking.ways import WAYS
from tests.support.facts import (
    AWAY,
    MOMENT,
    TOTAL,
    absent,
    completed_run,
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
from watch.facts import MOST, Agreement, Facts, Server
from watch.feed import KEPT, Event, Feed
from watch.history import WINDOW, History
from watch.page import Breakage, Page, Rendered, Scene
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
STOP_REDIS = {"stop-redis": WAYS["stop-redis"]}


def rendered(
    seen: Facts, page: Page | None = None, feed: Feed | None = None, history: History | None = None
) -> tuple[Page, Rendered]:
    page = page or Page(Scene(token="the-token"))  # noqa: S106
    last = (seen.at, seen.database) if seen.database else None
    events = (feed or Feed()).newest()
    return page, page.render(seen, last, history or History(), events)


def html_of(seen: Facts, **given: Any) -> str:
    page, parts = rendered(seen, **given)
    return page.whole(parts).decode()


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


def test_what_is_wrong_is_the_headline_and_no_reader_is_green_beside_it() -> None:
    well = Markup(html_of(facts()))
    assert "All is well" in well.text
    assert "6,344,236.123" in well.text  # for who has no scripts, and is shown a new page
    assert ("meta", {"http-equiv": "refresh", "content": "5"}) in well.elements
    away = html_of(replace(facts(), redis=AWAY, log=None))
    assert re.search(r'<h1 class="bad">Redis [^<]+</h1>', away)
    assert "All is well" not in away
    off = Agreement(12_345, {"consumer0": TOTAL, "consumer1": TOTAL + Decimal("0.001")})
    wrong = html_of(facts(agreement=off))
    assert '<h1 class="bad">The totals disagree at position 12,345</h1>' in wrong
    assert "They disagree at position 12,345." in wrong
    box = Markup(rendered(facts(agreement=off))[1].parts["counted"])
    assert (box.elements[0][1]["class"] or "").strip() == "bad"
    assert "disagree" in box.text
    assert ("span", {"class": "lag good"}) not in box.elements


def test_what_a_fleet_that_starts_still_lacks_is_no_fault() -> None:
    lacks = replace(facts(), postgres=Server(False, "the schema is empty"), database=None)
    page, late = rendered(lacks)
    early = page.render(lacks, None, History(), [], starting=True)
    assert '<h1 class="noted">The fleet is starting</h1>' in early.parts["verdict"]
    assert "Postgres is not ready yet: the schema is empty" in early.parts["verdict"]
    assert '<h1 class="bad">Postgres can' in late.parts["verdict"]
    for part, said in (("servers", "Postgres starting"), ("announcement", "is starting")):
        assert said in early.parts[part]
        assert said not in late.parts[part]
    assert not any('"bad' in part or '"down' in part for part in early.parts.values())


def test_while_it_is_being_broken_the_headline_says_so_even_to_who_may_only_look() -> None:
    breakage = Breakage("stop-redis", "Redis is stopped", "Redis, with 9 entries, is shut down.")
    for page in (Page(Scene(STOP_REDIS, breakage)), Page(Scene(breakage=breakage))):
        for seen in (facts(), replace(facts(), redis=AWAY, log=None)):
            _, parts = rendered(seen, page)
            verdict = parts.parts["verdict"]
            assert '<h1 class="noted">Being broken: Redis is stopped</h1>' in verdict
            assert "All is well" not in verdict
            assert "Redis, with 9 entries, is shut down." in verdict
            assert ("connection refused" in verdict) == (not seen.redis.up)
            assert parts.parts["announcement"] == "The fleet is being broken."
    breakage.way = ""
    assert "All is well" in html_of(facts(), page=page)


@pytest.mark.parametrize(
    ("seconds", "mood", "says"),
    [
        (0.4, "", "Every reader keeps up"),
        (3.4, "noted", "The total consumer1 is 3.4\xa0s behind"),
        (12, "bad", "The total consumer1 is 7 records and 12\xa0s behind"),
    ],
)
def test_a_reader_that_falls_behind_is_pointed_out_before_it_is_a_problem(
    seconds: float, mood: str, says: str
) -> None:
    late = total("consumer1", records_behind=7, seconds_behind=seconds)
    _, parts = rendered(facts(readers=(total("consumer0"), late)))
    assert says in parts.parts["verdict"].replace("12 s", "12\xa0s")
    box = Markup(parts.parts["counted"]).elements
    assert (box[0][1]["class"] or "").strip() == mood
    assert ("span", {"class": f"lag {mood}"}) in box
    assert ("span", {"class": "lag good"}) in box


def test_lines_that_belong_together_are_read_from_top_to_bottom() -> None:
    feed = Feed()
    for line in ("consumer1 is frozen for 5 s.", "all that it lacks is deleted.", "Watch it."):
        feed.add([Event(MOMENT, "news", line, is_narrated=True)])
    feed.add([Event(MOMENT, "fault", "something else")])
    feed.add([Event(MOMENT, "news", "It goes on.", is_narrated=True)])
    feed.add([Event(MOMENT + timedelta(seconds=5), "news", "It has healed.", is_narrated=True)])
    _, parts = rendered(facts(), feed=feed)
    assert [Markup(item).text.split(" ", 1)[1] for _, item in parts.feed] == [
        "It has healed.",
        "It goes on.",
        "something else",
        "consumer1 is frozen for 5 s. All that it lacks is deleted. Watch it.",
    ]


def test_what_postgres_last_said_stays_and_is_marked_while_it_is_away() -> None:
    page, seen = Page(Scene()), facts()
    away = replace(facts(60), database=None, postgres=AWAY)
    assert seen.database is not None
    parts = page.render(away, (seen.at, seen.database), History(), [])
    assert "as it was at 14:03:22" in parts.parts["verdict"]
    assert "6,344,236.123" in parts.parts["totals"]
    assert "stale" in parts.parts["post"]
    # And a page that never saw it has dashes, not zeros.
    never = page.render(away, None, History(), [])
    assert ">\N{EN DASH}<" in never.parts["post"]


def test_the_newest_dead_receipts_are_named_with_their_reasons() -> None:
    letters = tuple(dead_receipt(ride) for ride in (7, 6, 5, 4, 3, 1))
    _, parts = rendered(facts(receipts=receipts(newest_dead=letters)))
    read = Markup(parts.parts["dead"])
    assert re.findall(r"ride (\d+)", read.text) == ["7", "6", "5", "4", "3"]
    assert read.text.count("status 422: never") == 5
    assert "No receipt is dead." in html_of(facts())


def test_each_chart_says_in_words_what_it_shows() -> None:
    history = History()
    for second in range(61):
        ours = replace(total(seconds_behind=9.0 if second == 30 else 0.25), kind="ratings")
        outside = replace(total("guest", seconds_behind=99.0), kind="outside", processes=None)
        rides = replace(database().rides, taken=second * 3)
        history.add(facts(second, readers=(ours, outside), rides=rides), second)
    _, parts = rendered(facts(61), history=history)
    assert "latest 3.0, least 3.0, most 3.0" in parts.parts["chart-rides"]
    assert (
        "latest 250 ms, least 250 ms, most 9.0 s".replace(" ms", "\xa0ms").replace("0 s", "0\xa0s")
        in (parts.parts["chart-lag"])
    )


def test_an_absent_server_is_a_hole_in_a_chart_and_a_restored_count_no_negative_rate() -> None:
    history = History()
    for second in (*range(0, 250, 5), *range(255, 300, 5)):  # nobody looked at 250
        taken = replace(database().rides, taken=1_000_000 + second if second < 200 else second)
        seen = facts(second, rides=taken)
        gone = 50 <= second < 100
        history.add(replace(seen, database=None, postgres=AWAY) if gone else seen, second)
    values = [point.value for point in history.rides()]
    known = [value for value in values if value is not None]
    assert values.count(None) == 12  # ten looks without Postgres, the first one after, the restore
    assert set(known) == {1.0}
    _, parts = rendered(facts(300), history=history)
    assert parts.parts["chart-rides"].count('class="line"') == 2


def test_readers_that_are_not_ours_push_no_total_out_of_the_drawing() -> None:
    guests = tuple(
        replace(total(f"guest{number}"), kind="group", processes=None, seconds_behind=number)
        for number in range(4)
    )
    _, parts = rendered(facts(readers=(*guests, *database().readers)))
    box = Markup(parts.parts["counted"])
    assert box.text.index("consumer0") < box.text.index("consumer1") < box.text.index("not ours")
    assert "guest3" in box.text
    assert "and 3 more, not ours" in box.text
    totals = tuple(total(f"consumer{number}") for number in range(9))
    _, parts = rendered(facts(readers=totals))
    many = Markup(parts.parts["counted"])
    assert "and 6 more consumers" in many.text
    assert Markup(parts.parts["totals"]).text.count("and 4 more") == 1
    crowded = Markup(rendered(facts(readers=(*guests, *totals)))[1].parts["counted"])
    assert "and 7 more consumers, 3 more not ours" in crowded.text
    for found in (box, many, crowded):  # however many there are, the box has as many rows
        assert [tag for tag, _ in found.elements].count("li") == 4


def test_what_was_counted_up_to_a_limit_says_so() -> None:
    many = receipts(dead=MOST, queued=MOST, waiting=MOST)
    aside = replace(database().rollup, minutes_set_aside=MOST)
    _, parts = rendered(facts(receipts=many, rollup=aside, malformed_entries={"total": MOST}))
    assert "total 10,000+" in parts.parts["entries"]
    assert "10,000+ queued, 0 in flight, 10,000+ waiting" in parts.parts["receipts"]
    assert "12,300 delivered, 10,000+ dead" in parts.parts["receipts"]
    assert "10,000+ set aside" in parts.parts["rollup"]


def test_the_last_completed_run_is_told_with_its_findings_and_what_failed_since() -> None:
    run = held_run(
        findings=(finding(), finding("minutes_wrong", held=False, about="14:03 is off")),
        open={"rides_changed": 1, "minutes_wrong": 14},
    )
    _, parts = rendered(facts(completed_run=run, failed_run=failed_run()))
    told = " ".join(Markup(parts.parts["runs"]).text.replace("\xa0", " ").split())
    assert "Run 8 failed 2 h ago: Spark is away" in told
    assert "Run 7, 11 h ago: held. Oldest look at an old ride: 20 d ago." in told
    assert "held warehouse" in told
    assert "agreed totals, readers, records, rollup, receipts, outbox, ratings" in told
    assert "held Postgres has 3 other rides than the warehouse: 17, 18, 19" in told
    assert "wrong 14:03 is off and 13 more findings" in told
    box = Markup(parts.parts["spark"])
    assert (box.elements[0][1]["class"] or "").strip() == "bad"
    assert "holds 1 finding" in box.text
    assert "run 8 failed" in box.text
    assert 'class="bad">Run 7 of the reconciliation holds' in parts.parts["verdict"]


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (facts(), "no drift"),
        (facts(completed_run=completed_run(status="wrong")), "found something wrong"),
        (facts(reconciliations=(reconciliation(drift={"a": Decimal(1)}),)), "drift repaired"),
        (facts(reconciliations=(), completed_run=None), "has not run yet"),
        (facts(reconciliations=(), completed_run=None, failed_run=failed_run()), "failed"),
    ],
)
def test_the_box_of_spark_says_what_came_of_it(seen: Facts, says: str) -> None:
    _, parts = rendered(seen)
    assert f'<p class="big">{says}</p>' in parts.parts["spark"]


def test_what_is_held_out_and_who_recounts_is_shown() -> None:
    lacking = total("consumer0", held_out=2, dropped=1)
    recounting = total("consumer1", recounts=True, seconds_behind=60.0, records_behind=7)
    letters = (held_out(521, retry=True), held_out(17, reason="a constraint"))
    seen = facts(readers=(lacking, recounting, *database().readers[2:]), held_out=letters)
    _, parts = rendered(seen)
    said = {name: " ".join(Markup(part).text.split()) for name, part in parts.parts.items()}
    assert "consumer0 2 held out, 1 dropped" in said["counted"]
    assert "consumer1 recounts" in said["counted"]
    assert said["held-out"].startswith(
        "521 too long ride.create, consumer0; 1 attempt, since 14:01:22"
    )
    assert said["held-out"].count("to be tried again") == 1
    assert "consumer1 recounts." in said["agreement"]
    assert "2, 1 dropped" in said["totals"]
    assert "The total consumer1 recounts, and is 7 records and 60 s behind" in said["verdict"]
    met = completed_run(status="agreed", open={"reader_recounts": 1})
    _, parts = rendered(facts(completed_run=met, reconciliations=()))
    assert "met a reader that recounts" in parts.parts["spark"]
    _, without = rendered(facts())
    assert "No record waits" in Markup(without.parts["held-out"]).text
