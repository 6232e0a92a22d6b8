"""What Prometheus is told: the facts in its text format, or in OpenMetrics, as it asks for.

What a server that is away would tell is left out; `rocket_rides_up` says which one is away. Every
label has few values: at most MOST_READERS readers are shown, ours first.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

from watch import measures, verdict
from watch.facts import Database, Facts, Reader
from watch.measures import Measure, T, Table, Value

PREFIX = "rocket_rides_"
UNIT = re.compile(r"_(seconds|meters|bytes)(_total)?$")
MOST_READERS = 50

Family = CounterMetricFamily | GaugeMetricFamily
Labels = dict[str, str]
Sample = tuple[Measure, Value, Labels]


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
        for measure, value, labels in samples(self.facts):
            if value is not None:
                metric = families.setdefault(measure.name, family(measure, [*labels]))
                metric.add_metric([*labels.values()], float(value))
        return families.values()


def family(measure: Measure, labels: list[str]) -> Family:
    """A metric. Its name says whether it is a counter, and what its unit is."""
    found = UNIT.search(measure.name)
    of = CounterMetricFamily if measure.name.endswith("_total") else GaugeMetricFamily
    name = PREFIX + measure.name.removesuffix("_total")
    return of(name, measure.help, labels=labels, unit=found[1] if found else "")


def samples(facts: Facts) -> Iterator[Sample]:
    """All that is told of these facts."""
    yield measures.UP, facts.postgres.up, {"server": "postgres"}
    yield measures.UP, facts.redis.up, {"server": "redis"}
    # Ages are by Postgres' clock; Prometheus compares this one with its own.
    yield measures.GATHERED_AT, (facts.looked_at or facts.at).timestamp(), {}
    yield measures.GATHERING, facts.gathered_in_seconds, {}
    found: list[str] = [problem.kind for problem in verdict.problems(facts)]
    for kind in get_args(verdict.Kind) if facts.database else ("away",):  # the others are unknown
        yield measures.PROBLEMS, found.count(kind), {"kind": kind}
    if facts.log:
        yield from each(measures.LOG, facts.log)
    if facts.database:
        yield from _database(facts.database)
        for last in facts.database.reconciliations[:1]:
            yield measures.RECONCILIATION_AGE, (facts.at - last.at).total_seconds(), {}


def _database(database: Database) -> Iterator[Sample]:
    yield from each(measures.RIDES, database.rides)
    yield from each(measures.LEADS, database.streamer, role="streamer")
    yield from each(measures.LEADS, database.rollup.lead, role="rollup")
    readers = shown(database.readers)
    yield measures.READERS_LEFT_OUT, len(database.readers) - len(readers), {}
    for reader in readers:
        name = text(reader.name)
        yield from each(measures.READERS, reader, kind=reader.kind, reader=name)
        if reader.counts:
            yield from each(measures.COUNTS, reader.counts, kind=reader.kind, reader=name)
        for last in database.reconciliations[:1] if reader.kind == "total" else ():
            drift = last.drift.get(reader.name, 0)
            yield measures.RECONCILIATION_DRIFT, drift, {"reader": name}
    if agreement := database.agreement:
        yield measures.TOTALS_AGREE, agreement.agree, {}
        yield measures.TOTALS_TOO_FAR_BEHIND, len(agreement.too_far_behind), {}
    yield from each(measures.ROLLUP, database.rollup)
    yield from each(measures.RECEIPTS, database.receipts)
    for kind, letters in sorted(database.dead_letters.items()):
        yield measures.DEAD_LETTERS, letters, {"kind": text(kind)}


def each(table: Table[T], of: T, **labels: str) -> Iterator[Sample]:
    """Every metric of a table, of one thing that these labels tell apart."""
    for measure, value in table.items():
        yield measure, value(of), labels


def shown(readers: Iterable[Reader]) -> list[Reader]:
    """At most MOST_READERS of them: nobody's checkpoints can crowd out this fleet's own readers."""
    first = sorted(readers, key=lambda reader: (not reader.is_ours, reader.kind, reader.name))
    return first[:MOST_READERS]


def text(name: str) -> str:
    """A label's value. Of what can't be printed, its code: a NUL ends Prometheus' reading."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()
