"""How a run tells of the rollup, the receipts and the outbox: to a person, and to a program."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from analytics.findings import MINUTES_HELD, RATINGS_CHANGED, READER_RECOUNTS, Finding, of_proofs
from analytics.ledger import Rated
from analytics.report.machine import as_json
from analytics.report.text import as_text
from analytics.result import (
    CountedRatings,
    Mismatch,
    OutboxVerdict,
    RatingsVerdict,
    ReceiptsVerdict,
    Result,
    RollupVerdict,
    Tally,
    WrongRides,
)
from analytics.rows import NAMED
from tests.support.results import MINUTE, MISSED, PROVED, RIDES_CHANGED, RIGHT, UNPROVED, consumer


def lines(result: Result) -> list[str]:
    return as_text(result).splitlines()


def test_what_agrees_is_said_to_agree_and_how_far() -> None:
    told = lines(PROVED)
    assert PROVED.agrees
    assert "rollup             1,440 minutes up to position 4000 of 4011  agrees" in told
    assert "receipts           3,000 rides up to position 4011            agrees" in told
    assert "outbox             5 staged records                           agrees" in told
    assert told[-1] == "All totals agree; so do the rollup, the receipts and the outbox."


def test_what_nobody_looked_at_is_not_said_to_agree() -> None:
    assert not [line for line in lines(RIGHT) if "rollup" in line or "receipts" in line]


def test_what_could_not_be_compared_is_not_said_to_agree() -> None:
    """As where the rollup has never run, or not since the last time."""
    rollup, receipts = RollupVerdict(500), ReceiptsVerdict(500)
    told = lines(replace(PROVED, rollup=rollup, receipts=receipts))
    assert "rollup             0 minutes up to position 500 of 4011  nothing to compare" in told
    assert "receipts           0 rides up to position 500 of 4011    nothing to compare" in told
    assert told[-1] == "All totals agree; so does the outbox."
    alone = lines(replace(PROVED, rollup=None, outbox=None))
    assert alone[-1] == "All totals agree; so do the receipts."
    aside = lines(replace(PROVED, rollup=RollupVerdict(500, set_aside=1)))
    assert [line for line in aside if line.endswith("nothing to compare, 1 minute set aside")]
    nobody = lines(replace(PROVED, consumers=[]))
    assert nobody[-1] == "There is no consumer to compare."


def test_a_minute_that_the_warehouse_lacks_rides_of_is_not_called_a_range_of_rides() -> None:
    mismatch = Mismatch(0, 28, Tally(10, Decimal(10)), Tally(11, Decimal(12)), MINUTE)
    wrong = replace(PROVED, mismatches=[mismatch])
    assert "rides of 2026-11-21 02:07 UTC" in lines(wrong)
    [told] = json.loads(as_json(wrong))["mismatches"]
    assert (told["minute"], told["after"], told["upto"]) == ("2026-11-21T02:07:00Z", 0, 28)


def test_what_is_wrong_is_named_and_what_follows() -> None:
    told = lines(UNPROVED)
    [rollup] = [line for line in told if line.startswith("rollup")]
    assert rollup.endswith("2 minutes wrong: to be computed anew, 1 minute set aside")
    [receipts] = [line for line in told if line.startswith("receipts")]
    assert receipts.endswith("12 without an outcome: to be delivered, 1 without a ride")
    [outbox] = [line for line in told if line.startswith("outbox")]
    assert outbox.endswith(
        "1 at or below last_sent, 2 without a row, 1 with another distance than the ride's"
    )
    assert "  2026-11-21 02:07 UTC: 2 rides, 2.001 m; its rides: 2 rides, 2.000 m" in told
    assert "  2026-11-21 02:08 UTC: missing; its rides: 1 ride, 5.000 m" in told
    assert "  7, 9 and 10 more" in told
    assert "  99" in told
    assert told[-1] == (
        "All totals agree; something is wrong with the rollup, the receipts and the outbox."
    )


def test_minutes_that_differ_from_held_rides_wait_with_them() -> None:
    told = lines(replace(UNPROVED, receipts=None, outbox=None, findings=[RIDES_CHANGED]))
    [rollup] = [line for line in told if line.startswith("rollup")]
    assert "2 minutes other than the rides that are held, 1 minute set aside" in rollup
    assert told[-1].endswith("; all totals agree; the rollup waits for what is held.")
    minutes = Finding(MINUTES_HELD, "2 minutes with another sum", held=True)
    told = lines(replace(UNPROVED, findings=[RIDES_CHANGED, minutes]))
    assert "something is wrong with the rollup" in told[-1]


def test_ratings_that_were_changed_are_not_said_to_agree() -> None:
    """Although each consumer has counted those that were there before."""
    consumers = [CountedRatings("ratings0", 4011, 3, 12, False, 3, 12)]
    changed = RatingsVerdict(consumers, ((Rated(0, 4011, 3, 12, MINUTE), 3, 8),))
    held = Finding(RATINGS_CHANGED, "the ratings 1 to 4011 were changed", held=True)
    told = lines(replace(PROVED, ratings=changed, findings=[held]))
    [ratings] = [line for line in told if line.startswith("ratings")]
    assert ratings.endswith("  changed")
    assert told[-1].endswith("; something is wrong with the ratings.")


def test_check_says_that_nothing_follows() -> None:
    told = lines(replace(UNPROVED, requested=False, repairing=False))
    assert [line for line in told if "2 minutes wrong: not repaired (--check)" in line]
    assert [line for line in told if "12 without an outcome: not repaired (--check)" in line]


def test_few_minutes_are_named_and_all_are_counted() -> None:
    assert UNPROVED.rollup
    many = replace(UNPROVED.rollup, wrong=UNPROVED.rollup.wrong * 6)
    told = lines(replace(UNPROVED, rollup=many))
    assert len([line for line in told if " its rides: " in line]) == NAMED
    assert "  and 2 more" in told


@pytest.mark.parametrize(
    ("receipts", "outbox"),
    [
        (ReceiptsVerdict(missing=WrongRides(1, (1,))), None),
        (ReceiptsVerdict(strange=WrongRides(1, (1,))), None),
        (None, OutboxVerdict(sent=WrongRides(1, (1,)))),
        (None, OutboxVerdict(orphans=WrongRides(1, (1,)))),
        (None, OutboxVerdict(different=WrongRides(1, (1,)))),
    ],
)
def test_anything_wrong_is_found(
    receipts: ReceiptsVerdict | None, outbox: OutboxVerdict | None
) -> None:
    [found] = of_proofs(receipts, outbox)
    assert found.part == ("receipts" if receipts else "outbox")
    assert replace(PROVED, findings=[found]).status == "wrong"
    assert PROVED.status == "agreed"
    assert RollupVerdict(set_aside=3).agrees  # a gap that is known


def test_a_total_that_recounts_is_not_judged_and_all_else_is() -> None:
    recounts = Finding(READER_RECOUNTS, "total consumer1 recounts: a later run compares it")
    recounting = consumer(1, "-539.837")._replace(recounts=True)
    seen = replace(PROVED, consumers=[consumer(0), recounting], findings=[recounts])
    assert seen.status == "agreed"
    told = lines(seen)
    assert "Under way: total consumer1 recounts: a later run compares it" in told
    assert told[-1] == "1 of 2 totals recounts."
    assert replace(seen, findings=[recounts, MISSED]).status == "wrong"
    assert lines(replace(seen, findings=[recounts, MISSED]))[-1].endswith(
        "1 reader is missing or behind."
    )


def test_ratings_that_are_recounted_are_not_said_to_agree() -> None:
    recounts = Finding(READER_RECOUNTS, "ratings ratings0 recounts: a later run compares it")
    consumers = [CountedRatings("ratings0", 4011, 3, 12, False, 10, 40, recounts=True)]
    seen = replace(PROVED, ratings=RatingsVerdict(consumers), findings=[recounts])
    assert (seen.status, lines(seen)[-1]) == ("agreed", "All totals agree.")


def test_a_reader_that_is_missing_is_said_although_all_else_agrees() -> None:
    told = lines(replace(PROVED, findings=[MISSED]))
    assert "Found: total consumer2 is gone" in told
    assert told[-1] == "All totals agree; 1 reader is missing or behind."
    several = lines(replace(PROVED, findings=[MISSED, MISSED]))
    assert several[-1] == "All totals agree; 2 readers are missing or behind."


def test_a_program_reads_the_same() -> None:
    told = json.loads(as_json(UNPROVED), parse_float=Decimal)
    assert told["agrees"] is False
    assert told["requested"] is True
    assert told["rollup"]["upto"] == 4000
    assert told["rollup"]["wrong"] == [
        {
            "minute": "2026-11-21T02:07:00Z",
            "rolled_up": {"rides": 2, "distance": Decimal("2.001")},
            "exact": {"rides": 2, "distance": 2},
        },
        {
            "minute": "2026-11-21T02:08:00Z",
            "rolled_up": None,
            "exact": {"rides": 1, "distance": 5},
        },
    ]
    assert told["receipts"] == {
        "upto": 4001,
        "rides": 3000,
        "missing": {"rides": 12, "ids": [7, 9]},
        "strange": {"rides": 1, "ids": [99]},
        "agrees": False,
    }
    assert told["outbox"]["orphans"] == {"rides": 2, "ids": [8, 9]}
    assert json.loads(as_json(RIGHT))["rollup"] is None
