"""What the feed tells: the differences of successive facts, in words."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.support.facts import (
    AWAY,
    MOMENT,
    TOTAL,
    absent,
    counts,
    database,
    dead_receipt,
    facts,
    receipts,
    total,
)
from watch.events import Events
from watch.facts import Agreement, Facts, Happened, Lead, Log, Reader, Rides
from watch.feed import KEPT, Event, Feed
from watch.page.templates import sentence
from watch.problems import ABSENT

_, *OTHERS = database().readers  # than consumer0


def told(*looks: Facts) -> list[str]:
    """What is told at the last of these looks."""
    events = Events()
    for look in looks[:-1]:
        events.since_last(look)
    return [event.words for event in events.since_last(looks[-1])]


def of(reader: Reader, **changed: Any) -> Facts:
    return facts(1, readers=(reader,), **changed)


def test_nothing_is_told_while_nothing_happens() -> None:
    more = facts(1, rides=Rides(12_400, 12_400, 2.0, 12_400, 12_400, 0, None))
    assert told(facts()) == []
    assert told(facts(), more) == []


HEALED = counts(gaps_healed=1, records_healed=11, distance_healed=Decimal("6344.236"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"readers": (total(counts=HEALED), *OTHERS)},
            "consumer0 healed a gap: 11 records, 6,344.236 m",
        ),
        # Another database's, a lost history's, or sent by a leader that had been replaced.
        (
            {"readers": (total(counts=counts(entries_ignored=2)), *OTHERS)},
            "consumer0 skipped 2 entries not committed by our streamer",
        ),
        (
            {"rollup": replace(database().rollup, minutes_set_aside=1)},
            "the rollup set aside 1 minute",
        ),
        (
            {"rides": Rides(12_000, 12_000, 0, 12_000, 12_000, 0, None)},
            "Postgres went back to an earlier time: from position 12,345 to 12,000",
        ),
        (
            {"readers": (total(), *OTHERS, total("a\x1b[31m\x00b"))},
            "a\\x1b[31m\\x00b has begun to read the log",
        ),
    ],
)
def test_what_became_different_is_told(change: dict[str, Any], words: str) -> None:
    assert told(facts(), facts(1, **change)) == [words]


def test_what_healed_while_nobody_looked_is_told() -> None:
    before = counts(gaps_healed=4, records_healed=9, distance_healed=Decimal("1.001"))
    after = counts(
        gaps_healed=6, records_healed=10, crashes_injected=3, distance_healed=Decimal("1.003")
    )
    away = replace(facts(1), database=None, postgres=AWAY)
    assert told(of(total(counts=before)), away, of(total(counts=after))) == [
        "Postgres is back",
        "consumer0 healed 2 gaps: 1 record, 0.002 m",
    ]


def test_a_counter_that_was_restored_to_an_earlier_one_tells_nothing() -> None:
    many = counts(gaps_healed=5, records_healed=7, crashes_injected=9, distance_healed=Decimal(8))
    few = counts(gaps_healed=1, records_healed=1, crashes_injected=1, distance_healed=Decimal(1))
    assert told(of(total(counts=many)), of(total(counts=few))) == []
    # One may rise although another one fell.
    mixed = counts(gaps_healed=6, records_healed=1, distance_healed=Decimal(1))
    assert told(of(total(counts=many)), of(total(counts=mixed))) == [
        "consumer0 healed a gap: 0 records"
    ]


def test_a_server_that_goes_away_and_comes_back_is_told_once_each() -> None:
    away = replace(facts(1), redis=AWAY, log=None)
    assert told(facts(), away) == ["Redis is away: connection refused"]
    assert told(facts(), away, away) == []
    assert told(facts(), away, away, facts(3)) == ["Redis is back"]


def test_a_server_that_is_not_there_at_the_start_is_no_fault() -> None:
    events, absent_yet = Events(), replace(facts(), redis=AWAY, log=None)
    first = [*events.since_last(absent_yet, True), *events.since_last(absent_yet, True)]
    then = events.since_last(facts(1), True)
    assert [(event.mood, event.words) for event in first if "Redis" in event.words] == [
        ("news", "Redis is not ready yet: connection refused")
    ]
    assert "Redis is ready" in [event.words for event in then]


def test_a_process_is_missed_only_when_it_does_not_come_back_at_once() -> None:
    well, missing = of(total()), of(total(processes=0))
    restarting, gone = absent(missing, ABSENT - 1), absent(missing, ABSENT)
    assert told(well, restarting) == []
    assert told(well, restarting, well) == []
    assert told(well, restarting, gone) == ["the total consumer0 is not at work"]
    assert told(well, gone, gone) == []
    assert told(well, gone, well) == ["the total consumer0 is at work again"]
    # After an outage it is not yet known for how long somebody has been missing.
    assert told(well, gone, absent(missing, 0)) == []
    leaderless = absent(facts(1, streamer=Lead(False, 1)), ABSENT)
    assert told(facts(), leaderless) == ["the streamer is not at work"]


def test_a_reader_that_comes_or_goes_is_told() -> None:
    latecomer = total("latecomer")
    both = facts(1, readers=(*database().readers, latecomer))
    assert told(facts(), both) == ["latecomer has begun to read the log"]
    assert told(both, facts(2)) == ["latecomer no longer reads the log"]


def test_a_disagreement_is_told_when_it_begins_and_when_it_ends() -> None:
    off = {"consumer0": TOTAL, "consumer1": TOTAL + Decimal("0.001")}
    wrong = facts(1, agreement=Agreement(12_345, off))
    assert told(facts(), wrong) == ["the totals disagree by 0.001 m at position 12,345"]
    assert told(facts(), wrong, wrong) == []
    assert told(facts(), wrong, facts(2)) == ["the totals agree again, at position 12,345"]


def test_dead_receipts_are_told_in_one_line() -> None:
    """By their counter, whichever are listed."""

    def dead(given_up: int, *letters: Any) -> Facts:
        return facts(1, receipts=receipts(given_up=given_up, newest_dead=letters))

    first = dead_receipt(200, since=MOMENT)
    assert told(facts(), dead(1, first)) == ["the receipt of ride 200 is dead: status 422: never"]
    # An older one shows up again when a newer one is delivered: nothing died.
    older = dead_receipt(100, since=MOMENT - timedelta(hours=1))
    assert told(dead(1, first), dead(1, older)) == []
    again = dead_receipt(100, since=MOMENT + timedelta(hours=1), reason="status 410")
    assert told(dead(1, first), dead(18, first, again)) == [
        "17 receipts died, the last one: status 410"
    ]
    assert told(dead(1, first), dead(2)) == ["1 receipt died"]


def test_what_postgres_kept_is_told_once_the_oldest_first() -> None:
    old = Happened(MOMENT - timedelta(hours=3), "a streamer took the lead after position 7")
    new = Happened(MOMENT, "reconciliation 8: all totals are right")
    assert told(facts(happened=(new, old))) == [old.words, new.words]
    assert told(facts(happened=(old,)), facts(1, happened=(new, old))) == [new.words]
    assert told(facts(happened=(new, old)), facts(1, happened=(old,))) == []


def test_what_was_told_is_not_told_again_when_it_is_listed_again() -> None:
    """As happens when newer ones are deleted, or the clock of Postgres is set back."""
    kept = Happened(MOMENT, "reconciliation 8: all totals are right")
    assert told(facts(happened=(kept,)), facts(1), facts(2, happened=(kept,))) == []
    events = Events()
    for minute in range(600):
        at = MOMENT + timedelta(minutes=minute)
        events.since_last(facts(minute * 60, happened=(Happened(at, "a lead"),)))
    assert len(events._told) < 60


def test_a_log_that_lost_its_entries_is_told_and_a_trimmed_one_is_not() -> None:
    def holding(length: int, added: int) -> Facts:
        return replace(facts(1), log=Log(length, 900, 0.4, added))

    full = holding(120, 900)
    lost = "the log lost entries: 120 at the last look, {} now"
    assert told(full, holding(0, 0)) == [lost.format(0)]
    anew = lost.format(2)  # it may be written anew before anybody looks
    assert told(full, holding(2, 2)) == [anew]
    assert told(full, replace(facts(1), redis=AWAY, log=None), holding(2, 2)) == [
        "Redis is back",
        anew,
    ]
    assert told(full, holding(1, 901)) == []
    assert told(full, holding(0, 900)) == []
    assert told(holding(0, 900), holding(0, 0)) == []


def test_of_entries_that_were_set_aside_a_few_are_told_and_the_others_counted() -> None:
    listed = tuple(
        Happened(
            MOMENT + timedelta(microseconds=each), f"no field {each}", is_fault=True, is_entry=True
        )
        for each in range(8)
    )
    last = ["no field 5", "no field 6", "no field 7"]

    def seen(moment: int = 1, listed: tuple[Happened, ...] = (), **entries: int) -> Facts:
        return facts(moment, happened=listed, malformed_entries=entries)

    before, after = seen(0, total=3), seen(total=123)
    assert told(before, seen(listed=listed[:1], total=4)) == ["no field 0"]
    assert told(before, seen(listed=listed, total=120, rollup=3)) == [
        *last,
        "readers met 117 more malformed entries",
    ]
    assert told(before, after) == ["readers met 120 more malformed entries"]
    assert told(after, seen(2, total=3)) == []
    # At first there is nothing to compare with, but what is listed.
    assert told(seen(0, listed, total=120)) == last


def test_names_that_are_gone_are_forgotten() -> None:
    events = Events()
    for number in range(50):
        gone = total(f"consumer{number}", processes=0)
        events.since_last(absent(of(gone), ABSENT))
    assert len(events._missing) == 1
    events.since_last(of(total("another")))
    assert [event.words for event in events.since_last(of(total("consumer49")))] == [
        "consumer49 has begun to read the log",
        "another no longer reads the log",
    ]


def test_what_became_known_at_one_look_is_told_in_the_order_of_its_time() -> None:
    events = Events()
    events.since_last(facts())
    away = replace(facts(1), database=None, postgres=AWAY)
    lead = Happened(MOMENT + timedelta(seconds=2), "a streamer took the lead")
    events.since_last(away)
    told_then = events.since_last(facts(3, happened=(lead,)))
    assert [event.words for event in told_then] == ["a streamer took the lead", "Postgres is back"]


def test_the_feed_keeps_the_newest() -> None:
    feed = Feed()
    feed.add(Event(MOMENT, "news", str(number)) for number in range(KEPT + 5))
    assert len(feed.newest()) == KEPT
    assert feed.newest()[0][1].words == str(KEPT + 4)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("readers met 3 more malformed entries", "Readers met 3 more malformed entries"),
        ("start python -m streamer", "Start python -m streamer"),
        ("consumer0 healed a gap", "consumer0 healed a gap"),
    ],
)
def test_a_sentence_has_a_capital_unless_it_begins_with_a_name(said: str, shown: str) -> None:
    assert sentence(said) == shown
