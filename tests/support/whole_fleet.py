"""Made-up facts of a whole fleet: every field has a value, and no two have the same."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from watch.facts import (
    Agreement,
    Counts,
    Database,
    Facts,
    Lead,
    Log,
    Reader,
    Receipts,
    Reconciliation,
    Rides,
    Rollup,
    Server,
)

AT = datetime(2026, 3, 28, 20, tzinfo=UTC)
UP, AWAY = Server(up=True), Server(up=False, reason="connection refused")
COUNTS = Counts(
    gaps_healed=2,
    rides_healed=11,
    distance_healed=Decimal("6344.236"),
    resends_skipped=30,
    entries_set_aside=1,
    unbelieved_entries=4,
    crashes_injected=7,
    resets_applied=1,
)
LOG = Log(length=900, bytes=65536, last_entry_seconds=0.25)


def total(name: str, ride: int = 1000, total: str = "263412.305") -> Reader:
    return Reader(
        kind="total",
        name=name,
        processes=1,
        ride=ride,
        rides_behind=1000 - ride,
        seconds_behind=(1000 - ride) / 2,
        total=Decimal(total),
        latency_seconds=0.012,
        counts=COUNTS,
    )


READERS = (
    total("consumer0"),
    total("consumer1", ride=990, total="258001.001"),
    Reader("rollup", "rollup", 1, 999, 1, 0.5, latency_seconds=0.3, counts=COUNTS),
    Reader("outside", "latecomer", None, 0, 1000, 500.0, counts=COUNTS),
)
DATABASE = Database(
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
        ride=990,
        totals={"consumer0": Decimal("258001.001"), "consumer1": Decimal("258001.001")},
        too_far_behind=("sleeper",),
    ),
    rollup=Rollup(
        lead=Lead(leads=True, standbys=0),
        complete_to=999,
        minutes_set_aside=1,
        dirty_minutes=3,
    ),
    receipts=Receipts(
        workers=2,
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
        unbelieved_entries=14,
        entries_set_aside=15,
    ),
    dead_letters={"total": 2, "rollup": 1},
    reconciliations=(
        Reconciliation(
            id=8,
            at=AT - timedelta(hours=17),
            ride=700,
            rides=690,
            total=Decimal("200000.000"),
            drift={"consumer1": Decimal("0.001")},
        ),
        Reconciliation(7, AT - timedelta(hours=41), 300, 290, Decimal("90000.000"), {}),
    ),
)
FACTS = Facts(at=AT, postgres=UP, redis=UP, database=DATABASE, log=LOG, gathered_in_seconds=0.004)
