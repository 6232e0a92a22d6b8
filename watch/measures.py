"""What is measured: each metric's name, its help text, and where in the facts its value is.

A name that ends in `_total` is a counter: it only rises, but for a restore. All others are gauges.
A value that is None is unknown, or there is no such thing; then the metric is left out.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple, TypeVar

from watch.facts import MOST, Counts, Lead, Log, Reader, Receipts, Rides, Rollup

Value = float | Decimal | None
T = TypeVar("T")


class Measure(NamedTuple):
    """One metric, without the prefix that all have."""

    name: str
    help: str


# Of one thing that all metrics of a table are about.
Table = dict[Measure, Callable[[T], Value]]

UP = Measure("up", "1 if the server can be used, 0 if not.")
GATHERED_AT = Measure(
    "gathered_timestamp_seconds", "When these facts were gathered, by the clock of whoever did."
)
GATHERING = Measure("gathering_seconds", "How long it took to gather these facts.")
PROBLEMS = Measure(
    "problems",
    "What does not work as it is meant to, by kind, as many lines as make status has of it; without"
    " Postgres, only what is away is known.",
)
READERS_LEFT_OUT = Measure(
    "readers_left_out", "Readers that are not shown here, because there are too many."
)

RIDES: Table[Rides] = {
    Measure(
        "taken_total",
        f"Rides taken. While more than {MOST} records are staged, the others are missing.",
    ): lambda rides: rides.taken,
    Measure(
        "records_sent_total", "Records that the streamer sent to the log and committed."
    ): lambda rides: rides.sent,
    Measure(
        "records_staged", f"Records in the outbox that wait for the streamer, up to {MOST}."
    ): lambda rides: rides.staged,
    Measure(
        "oldest_staged_age_seconds", "The age of the oldest record in the outbox; 0 without any."
    ): lambda rides: rides.oldest_staged_seconds or 0,
}

# By role: streamer or rollup.
LEADS: Table[Lead] = {
    Measure("leader", "1 if a process leads, 0 if nobody does this work."): lambda it: it.leads,
    Measure("standbys", "Processes that would take the lead."): lambda lead: lead.standbys,
}

LOG: Table[Log] = {
    Measure("log_entries", "Entries in the log."): lambda log: log.length,
    Measure("log_bytes", "The memory that the log takes up in Redis."): lambda log: log.bytes,
    Measure(
        "log_last_entry_age_seconds",
        "The age of the last entry, by Redis' clock; left out while the log is empty.",
    ): lambda log: log.last_entry_seconds,
}

# By the reader's kind and name.
READERS: Table[Reader] = {
    Measure(
        "reader_processes", "A reader's processes at work; left out for those that aren't ours."
    ): lambda reader: reader.processes,
    Measure("reader_lag_rides", f"Rides that a reader lacks, up to {MOST}."): lambda reader: (
        reader.rides_behind
    ),
    Measure(
        "reader_lag_seconds", "The age of the oldest ride that a reader lacks; 0 if it has all."
    ): lambda reader: reader.seconds_behind,
    Measure(
        "reader_latency_seconds",
        "From the transaction that took a ride to the one that counted it: the newest ride's; left"
        " out when the reader has counted nothing for a minute.",
    ): lambda reader: reader.latency_seconds,
    Measure(
        "reader_distance_meters",
        "A total's running total. A binary float, so it is rounded; the exact one is in"
        " GET /consumers.",
    ): lambda reader: reader.total,
}

# By the reader's kind and name, of readers with a checkpoint.
COUNTS: Table[Counts] = {
    Measure(
        "reader_gaps_healed_total", "Gaps in the log that a reader healed from the rides."
    ): lambda counts: counts.gaps_healed,
    Measure(
        "reader_rides_healed_total", "Rides that were missing from the log and healed."
    ): lambda counts: counts.rides_healed,
    Measure(
        "reader_healed_meters_total",
        "The distance of the rides that were missing from the log and healed.",
    ): lambda counts: counts.distance_healed,
    Measure(
        "reader_resends_skipped_total", "Rides that were sent again, and skipped."
    ): lambda counts: counts.resends_skipped,
    Measure(
        "reader_entries_set_aside_total", "Entries that were no rides, set aside as dead letters."
    ): lambda counts: counts.entries_set_aside,
    Measure(
        "reader_entries_unbelieved_total",
        "Entries left out because this database's streamer did not commit them: of a leader that"
        " had been replaced, of another database, or of a history that a restore took back.",
    ): lambda counts: counts.unbelieved_entries,
    Measure("reader_crashes_injected_total", "Crashes that CRASH_RATE asked for."): lambda counts: (
        counts.crashes_injected
    ),
    Measure(
        "reader_resets_applied_total", "Wrong totals that a reset made right."
    ): lambda counts: counts.resets_applied,
}

ROLLUP: Table[Rollup] = {
    Measure(
        "rollup_dirty_minutes", "Minutes that wait to be computed anew; unknown without Redis."
    ): lambda rollup: rollup.dirty_minutes,
    Measure(
        "rollup_minutes_set_aside", "Minutes that could not be computed, and wait for a person."
    ): lambda rollup: rollup.minutes_set_aside,
}

RECEIPTS: Table[Receipts] = {
    Measure(
        "receipts_delivered_total", "Receipts that their receiver has taken."
    ): lambda receipts: receipts.delivered,
    Measure(
        "receipts_given_up_total",
        "Receipts that became dead letters, whatever a person decided about them since.",
    ): lambda receipts: receipts.given_up,
    Measure(
        "receipts_swept_total", "Receipts of rides that the log had lost, found by the sweep."
    ): lambda receipts: receipts.swept,
    Measure(
        "receipts_pending", f"Rides whose receipt has no outcome yet, up to {MOST}."
    ): lambda receipts: receipts.pending,
    Measure(
        "receipts_oldest_undelivered_age_seconds",
        "The age of the oldest ride whose receipt has no outcome; 0 if every ride's has one.",
    ): lambda receipts: receipts.oldest_undelivered_seconds or 0,
    Measure(
        "receipts_dead", "Receipts that could not be delivered, and wait for a person's decision."
    ): lambda receipts: receipts.dead,
    Measure(
        "receipts_replayed", "Dead receipts that somebody asked for again, and that are not sent."
    ): lambda receipts: receipts.being_sent_again,
    Measure("receipts_workers", "Processes that deliver receipts."): lambda receipts: (
        receipts.workers
    ),
}

TOTALS_AGREE = Measure(
    "totals_agree", "1 if all totals are equal at the greatest ride that they share, 0 if not."
)
TOTALS_TOO_FAR_BEHIND = Measure(
    "totals_too_far_behind", f"Totals more than {MOST} rides behind, so not compared."
)
DEAD_LETTERS = Measure("dead_letters", "Entries that lie in dead_letters, by the kind of reader.")
RECONCILIATION_AGE = Measure("reconciliation_age_seconds", "How long ago the last one ended.")
RECONCILIATION_DRIFT = Measure(
    "reconciliation_drift_meters",
    "What the last reconciliation found a total off by, before its repair; 0 if it was right.",
)
