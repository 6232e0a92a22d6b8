"""What Prometheus is told: the facts in its text format, or in OpenMetrics, as it asks for.

What is not known is left out, such as all that a server which is away would tell; `rocket_rides_up`
says which server is away. Every label has few values: at most MOST_READERS readers are shown, ours
first. A name that ends in `_total` is a counter: it only rises, but for a restore. All others are
gauges. In a name, the unit comes last, but for `_total`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

from rocket_rides.cells import CELL_SIZE
from watch.facts import MOST, Counts, Database, Facts, Reader, Receipts
from watch.problems import Kind, problems
from watch.runs import VERDICTS, CompletedRun

PREFIX = "rocket_rides_"
UNIT = re.compile(r"_(seconds|meters|bytes)(_total)?$")
MOST_READERS = 50

# Each metric's name, without PREFIX, and what it is.
HELP = {
    "up": "1 if the server can be used, else 0.",
    "gathered_timestamp_seconds": "When these facts were gathered, by the live page's clock.",
    "gathering_seconds": "How long it took to gather these facts.",
    "problems": "Problems, as in make status; without Postgres, only servers that are away.",
    "cell": "1, with this cell's number as a label, to join other metrics to it.",
    # The rides and the outbox.
    "taken_total": f"Records taken, of all kinds; too low while more than {MOST} are staged.",
    "records_sent_total": "Records sent to the log and committed.",
    "records_staged": f"Records in the outbox, up to {MOST}.",
    "oldest_staged_age_seconds": "The oldest staged record's age; 0 without any.",
    "leader": "1 if a process leads, else 0.",
    "standbys": "Processes that would take the lead.",
    "log_bytes": "The log's memory in Redis.",
    "oldest_snapshot_age_seconds": "How long the oldest snapshot in Postgres has been held, which"
    " keeps dead rows; 0 if none, unknown for a standby's.",
    "oldest_snapshot_age_transactions": "For how many transactions, a standby's included.",
    "readers_left_out": f"Readers not shown: those beyond {MOST_READERS}.",
    "reader_processes": "Processes at work for a reader of ours.",
    "reader_lag_records": f"Records that a reader lacks, up to {MOST}.",
    "reader_lag_seconds": "The age of the oldest record that it lacks; 0 if none.",
    "reader_latency_seconds": "From taking its newest record to counting it; unknown after a"
    " minute without one.",
    "reader_distance_meters": "A total, rounded to a binary float.",
    "reader_ratings": "Ratings that a consumer of them has counted.",
    "reader_stars": "Stars that it has counted.",
    "reader_recounts": "1 while it recounts, else 0.",
    "reader_records_held_out": "Records held out, undecided.",
    "reader_records_dropped": "Records held out, given up.",
    # Of readers with a checkpoint; what counts entries is told of the receipts, too.
    "reader_gaps_healed_total": "Gaps in the log, healed from the tables.",
    "reader_records_healed_total": "Records that the log lacked, healed.",
    "reader_healed_meters_total": "The distance of the healed rides.",
    "reader_resends_skipped_total": "Records sent again, and skipped.",
    "reader_entries_malformed_total": "Malformed entries that it has met.",
    "reader_entries_ignored_total": "Entries skipped, which our streamer did not commit.",
    "reader_entries_passed_total": "Records of types that it does not handle.",
    "reader_crashes_injected_total": "Crashes that CRASH_RATE asked for.",
    "reader_resets_applied_total": "Resets and recounts that it has applied.",
    # What is derived from the rides.
    "totals_agree": "1 if all totals are equal at the last position that all have reached, else 0.",
    "rollup_dirty_minutes": "Minutes to be computed anew; unknown without Redis.",
    "rollup_minutes_set_aside": "Minutes that could not be computed.",
    "receipts_delivered_total": "Receipts that their receiver has taken.",
    "receipts_given_up_total": "Receipts that became dead letters.",
    "receipts_swept_total": "Receipts of rides that the log had lost.",
    "receipts_pending": f"Rides whose receipt has no outcome, up to {MOST}.",
    "receipts_queued": "Receipts not attempted yet. Like in_flight and waiting, it counts at"
    f" most {MOST} that are due, {MOST} due later and {MOST} quarantined.",
    "receipts_in_flight": "Receipts being sent.",
    "receipts_waiting": "Receipts to be attempted again, replays included.",
    "receipts_oldest_undelivered_age_seconds": "The age of the oldest ride whose receipt has no"
    " outcome, or 0.",
    "receipts_dead": "Dead letters that wait for a decision.",
    "receipts_replayed": "Dead letters to be sent again.",
    "receipts_workers": "Processes that deliver receipts.",
    "malformed_entries": "Log entries in the table malformed_entries, by the kind of reader.",
    # The reconciliation: the last sum that was proven, and the runs.
    "reconciliation_age_seconds": "How long ago the last sum was proven.",
    "reconciliation_drift_meters": "How far off the last sum found a total, before its repair.",
    "run_status": "1 for the last completed run's status, else 0.",
    "run_age_seconds": "How long ago the last completed run ended.",
    "run_verdict": "1 for that run's verdict on the part, else 0.",
    "failed_runs": f"Runs that failed since the last completed one, up to {MOST}.",
    "open_findings": "Findings that the last completed run left open.",
    "oldest_look_age_seconds": "No old ride was compared longer ago than this.",
}
# What tells the samples of a metric apart. A role is streamer or rollup.
LABELS: dict[str, tuple[str, ...]] = {
    "up": ("server",),
    "problems": ("kind",),
    "cell": ("cell",),
    "leader": ("role",),
    "standbys": ("role",),
    "malformed_entries": ("kind",),
    "reconciliation_drift_meters": ("reader",),
    "run_status": ("status",),
    "run_verdict": ("part", "verdict"),
    "open_findings": ("kind",),
} | {name: ("kind", "reader") for name in HELP if name.startswith("reader_")}

Family = CounterMetricFamily | GaugeMetricFamily
Labels = dict[str, str]
Sample = tuple[str, float | Decimal | None, Labels]  # None: unknown, or there is no such thing


def render(facts: Facts, accept: str) -> tuple[bytes, str]:
    """The metrics, and their content type, for a client that sent this Accept header."""
    try:
        encoder, content_type = choose_encoder(accept if accept.isascii() else "")
    except TypeError:  # the library's answer to a version that is no number
        encoder, content_type = choose_encoder("")
    return encoder(Collector(facts)), content_type


@dataclass(frozen=True)
class Collector:
    """The facts as the client library wants them: families of samples."""

    facts: Facts

    def collect(self) -> Iterable[Family]:
        """All metrics that have a value."""
        families: dict[str, Family] = {}
        for name, value, labels in samples(self.facts):
            if value is not None:
                metric = families.setdefault(name, family(name))
                metric.add_metric([labels[label] for label in LABELS.get(name, ())], float(value))
        return families.values()


def family(name: str) -> Family:
    """A metric. Its name says whether it is a counter, and what its unit is."""
    found = UNIT.search(name)
    of = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    whole = PREFIX + name.removesuffix("_total")
    return of(whole, HELP[name], labels=LABELS.get(name), unit=found[1] if found else "")


def samples(facts: Facts) -> Iterator[Sample]:
    """All that is told of these facts."""
    for name, value, labels in _samples(facts):
        yield name, value, {label: text(of) for label, of in labels.items()}


def _samples(facts: Facts) -> Iterator[Sample]:
    yield "up", facts.postgres.up, {"server": "postgres"}
    yield "up", facts.redis.up, {"server": "redis"}
    # Ages are by Postgres' clock; Prometheus compares this one with its own.
    yield "gathered_timestamp_seconds", (facts.looked_at or facts.at).timestamp(), {}
    yield "gathering_seconds", facts.gathered_in_seconds, {}
    found: list[str] = [problem.kind for problem in problems(facts)]
    for kind in get_args(Kind) if facts.database else ("away",):  # the others are unknown
        yield "problems", found.count(kind), {"kind": kind}
    if facts.log:
        yield "log_bytes", facts.log.bytes, {}
    if facts.database:
        yield from _database(facts.database)
        for last in facts.database.reconciliations[:1]:
            yield "reconciliation_age_seconds", (facts.at - last.at).total_seconds(), {}
        yield "failed_runs", facts.database.failed_runs, {}
        if run := facts.database.completed_run:
            yield from _run(run, facts.at)


def _database(database: Database) -> Iterator[Sample]:
    rides = database.rides
    yield "cell", 1, {"cell": str(rides.last_sent // CELL_SIZE)}
    yield "taken_total", rides.taken, {}
    yield "records_sent_total", rides.sent, {}
    yield "records_staged", rides.staged, {}
    yield "oldest_staged_age_seconds", rides.oldest_staged_seconds or 0, {}
    for role, lead in (("streamer", database.streamer), ("rollup", database.rollup.lead)):
        yield "leader", lead.leads, {"role": role}
        yield "standbys", lead.standbys, {"role": role}
    yield "oldest_snapshot_age_seconds", database.oldest_snapshot_seconds, {}
    yield "oldest_snapshot_age_transactions", database.oldest_snapshot_transactions, {}
    readers = shown(database.readers)
    yield "readers_left_out", len(database.readers) - len(readers), {}
    for reader in readers:
        labels = {"kind": reader.kind, "reader": reader.name}
        yield from _reader(reader, labels)
        if reader.counts:
            yield from _counts(reader.counts, labels)
        for last in database.reconciliations[:1] if reader.kind == "total" else ():
            drift = last.drift.get(reader.name, 0)
            yield "reconciliation_drift_meters", drift, {"reader": reader.name}
    if agreement := database.agreement:
        yield "totals_agree", agreement.agree, {}
    yield "rollup_dirty_minutes", database.rollup.dirty_minutes, {}
    yield "rollup_minutes_set_aside", database.rollup.minutes_set_aside, {}
    yield from _receipts(database.receipts)
    for kind, entries in sorted(database.malformed_entries.items()):
        yield "malformed_entries", entries, {"kind": kind}


def _reader(reader: Reader, labels: Labels) -> Iterator[Sample]:
    yield "reader_processes", reader.processes, labels
    yield "reader_lag_records", reader.records_behind, labels
    yield "reader_lag_seconds", reader.seconds_behind, labels
    yield "reader_latency_seconds", reader.latency_seconds, labels
    yield "reader_distance_meters", reader.total, labels
    yield "reader_ratings", reader.ratings, labels
    yield "reader_stars", reader.stars, labels
    if reader.counts:
        yield "reader_recounts", reader.recounts, labels
        yield "reader_records_held_out", reader.held_out, labels
        yield "reader_records_dropped", reader.dropped, labels


def _counts(counts: Counts, labels: Labels) -> Iterator[Sample]:
    yield "reader_gaps_healed_total", counts.gaps_healed, labels
    yield "reader_records_healed_total", counts.records_healed, labels
    yield "reader_healed_meters_total", counts.distance_healed, labels
    yield "reader_resends_skipped_total", counts.resends_skipped, labels
    yield "reader_entries_malformed_total", counts.entries_malformed, labels
    yield "reader_entries_ignored_total", counts.entries_ignored, labels
    yield "reader_entries_passed_total", counts.entries_passed, labels
    yield "reader_crashes_injected_total", counts.crashes_injected, labels
    yield "reader_resets_applied_total", counts.resets_applied, labels


def _receipts(receipts: Receipts) -> Iterator[Sample]:
    yield "receipts_delivered_total", receipts.delivered, {}
    yield "receipts_given_up_total", receipts.given_up, {}
    yield "receipts_swept_total", receipts.swept, {}
    yield "receipts_pending", receipts.pending, {}
    yield "receipts_queued", receipts.queued, {}
    yield "receipts_in_flight", receipts.in_flight, {}
    yield "receipts_waiting", receipts.waiting, {}
    oldest = receipts.oldest_undelivered_seconds or 0
    yield "receipts_oldest_undelivered_age_seconds", oldest, {}
    yield "receipts_dead", receipts.dead, {}
    yield "receipts_replayed", receipts.being_sent_again, {}
    yield "receipts_workers", receipts.workers, {}
    labels = {"kind": "group", "reader": "receipts"}  # as in GET /consumers
    yield "reader_entries_malformed_total", receipts.entries_malformed, labels
    yield "reader_entries_ignored_total", receipts.entries_ignored, labels
    yield "reader_entries_passed_total", receipts.entries_passed, labels


def _run(run: CompletedRun, at: datetime) -> Iterator[Sample]:
    for status in VERDICTS:
        yield "run_status", run.status == status, {"status": status}
    yield "run_age_seconds", (at - run.at).total_seconds(), {}
    for part, given in sorted(run.verdicts.items()):
        for each in VERDICTS:
            yield "run_verdict", given == each, {"part": part, "verdict": each}
    for kind, findings in sorted(run.open.items()):
        yield "open_findings", findings, {"kind": kind}
    if run.oldest_look:
        yield "oldest_look_age_seconds", (at - run.oldest_look).total_seconds(), {}


def shown(readers: Iterable[Reader]) -> list[Reader]:
    """At most MOST_READERS of them, ours first, so that others can't crowd ours out."""
    first = sorted(readers, key=lambda reader: (not reader.is_own, reader.kind, reader.name))
    return first[:MOST_READERS]


def text(name: str) -> str:
    """A label's value. What can't be printed is escaped: a NUL would end Prometheus' reading."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()
