"""What the page says of made-up facts: the headline, and what is in each box."""

import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.support.facts import (
    AWAY,
    MOMENT,
    TOTAL,
    completed_run,
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
from watch.facts import MOST, Agreement, Facts, Server
from watch.feed import Event, Feed
from watch.history import History
from watch.page import Breakage, Page, Scene


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
