"""Made-up facts of a whole fleet: every field has a value, and no two have the same."""

from dataclasses import replace
from decimal import Decimal

from tests.support.facts import (
    completed_run,
    counts,
    facts,
    failed_run,
    finding,
    receipts,
    reconciliation,
    rollup,
)
from tests.support.facts import total as a_total
from watch.facts import Agreement, Lead, Reader, Rides, Rollup
from watch.runs import AGREED, HELD, WRONG

# Of every kind there is, a number of its own.
KINDS = (
    "rides_changed",
    "warehouse_changed",
    "rides_undecided",
    "records_missing",
    "total_wrong",
    "total_held",
    "reader_gone",
    "reader_behind",
    "reader_recounts",
    "minutes_wrong",
    "minutes_held",
    "receipts_missing",
    "receipts_strange",
    "outbox_wrong",
    "ratings_wrong",
    "ratings_held",
    "ratings_changed",
)
COUNTS = counts(
    gaps_healed=2,
    records_healed=11,
    distance_healed=Decimal("6344.236"),
    resends_skipped=30,
    entries_malformed=1,
    entries_ignored=4,
    entries_passed=8,
    crashes_injected=7,
    resets_applied=1,
)


def total(name: str, behind: int = 0, metres: str = "263412.305") -> Reader:
    return a_total(
        name,
        ride=1000 - behind,
        records_behind=behind,
        seconds_behind=behind / 2,
        total=Decimal(metres),
        counts=COUNTS,
    )


READERS = (
    replace(total("consumer0"), held_out=17, dropped=18),
    total("consumer1", behind=10, metres="258001.001"),
    rollup(ride=999, records_behind=1, seconds_behind=0.5, latency_seconds=0.3, counts=COUNTS),
    Reader("outside", "latecomer", None, 0, 1000, 500.0, counts=COUNTS),
)
FACTS = facts(
    rides=Rides(
        taken=1005,
        newest=1007,
        per_second=2.0,
        last_sent=1000,
        sent=1000,
        staged=5,
        oldest_staged_seconds=0.125,
    ),
    streamer=Lead(leads=True, standbys=1),
    readers=READERS,
    agreement=Agreement(
        990,
        dict.fromkeys(("consumer0", "consumer1"), Decimal("258001.001")),
        too_far_behind=("sleeper",),
    ),
    rollup=Rollup(Lead(True, 0), complete_to=999, minutes_set_aside=1, dirty_minutes=3),
    receipts=receipts(
        delivered=985,
        dead=10,
        being_sent_again=1,
        pending=24,
        oldest_undelivered_seconds=12.5,
        swept=6,
        given_up=11,
        queued=13,
        in_flight=8,
        waiting=4,
        entries_ignored=14,
        entries_passed=16,
        entries_malformed=15,
    ),
    malformed_entries={"total": 2, "rollup": 1},
    reconciliations=(reconciliation(drift={"consumer1": Decimal("0.001")}),),
    completed_run=completed_run(
        status=HELD,
        verdicts={"totals": WRONG, "warehouse": HELD, "outbox": AGREED},
        findings=(finding(), finding("total_wrong", part="totals", held=False)),
        open={kind: number for number, kind in enumerate(KINDS, start=1)},
        held=9,
    ),
    failed_run=failed_run(),
    failed_runs=5,
)
assert FACTS.database
DATABASE = FACTS.database
