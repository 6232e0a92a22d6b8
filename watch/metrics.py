"""What Prometheus is told: the facts in its text format, or in OpenMetrics, as it asks for.

What a server that is away would tell is left out; `rocket_rides_up` says which one is away. Every
label has few values: at most MOST_READERS readers are shown, ours first.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

from watch import measures, verdict
from watch.facts import Database, Facts, Reader
from watch.measures import Measure, T, Table, Value

PREFIX = "rocket_rides_"
UNIT = re.compile(r"_(seconds|meters|bytes)(_total)?$")
MOST_READERS = 50

Labels = tuple[str, ...]
# The values of the labels, and the metric's own.
Samples = Iterable[tuple[Labels, Value]]
Measured = tuple[Measure, Labels, Samples]


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

    def collect(self) -> Iterator[Metric]:
        """All metrics that have a value."""
        for measure, labels, samples in self._measured():
            known = [(values, float(value)) for values, value in samples if value is not None]
            if known:
                yield family(measure, labels, known)

    def _measured(self) -> Iterator[Measured]:
        facts = self.facts
        up = [(("postgres",), facts.postgres.up), (("redis",), facts.redis.up)]
        yield measures.UP, ("server",), up
        # Ages are by Postgres' clock; Prometheus compares this one with its own.
        yield measures.GATHERED_AT, (), [((), (facts.looked_at or facts.at).timestamp())]
        yield measures.GATHERING, (), [((), facts.gathered_in_seconds)]
        found: list[str] = [problem.kind for problem in verdict.problems(facts)]
        kinds = get_args(verdict.Kind) if facts.database else ("away",)  # the others are unknown
        problems = [((kind,), found.count(kind)) for kind in kinds]
        yield measures.PROBLEMS, ("kind",), problems
        if facts.log:
            yield from table(measures.LOG, (), [((), facts.log)])
        if facts.database:
            yield from measured(facts.database)
            yield from reconciled(facts, facts.database)


def measured(database: Database) -> Iterator[Measured]:
    """What Postgres says."""
    yield from table(measures.RIDES, (), [((), database.rides)])
    leads = [(("streamer",), database.streamer), (("rollup",), database.rollup.lead)]
    yield from table(measures.LEADS, ("role",), leads)
    readers = shown(database.readers)
    left_out = len(database.readers) - len(readers)
    yield measures.READERS_LEFT_OUT, (), [((), left_out)]
    named = [((reader.kind, text(reader.name)), reader) for reader in readers]
    yield from table(measures.READERS, ("kind", "reader"), named)
    counts = [(values, reader.counts) for values, reader in named if reader.counts]
    yield from table(measures.COUNTS, ("kind", "reader"), counts)
    if database.agreement:
        yield measures.TOTALS_AGREE, (), [((), database.agreement.agree)]
        behind = len(database.agreement.too_far_behind)
        yield measures.TOTALS_TOO_FAR_BEHIND, (), [((), behind)]
    yield from table(measures.ROLLUP, (), [((), database.rollup)])
    yield from table(measures.RECEIPTS, (), [((), database.receipts)])
    letters = [((text(kind),), count) for kind, count in sorted(database.dead_letters.items())]
    yield measures.DEAD_LETTERS, ("kind",), letters


def reconciled(facts: Facts, database: Database) -> Iterator[Measured]:
    """What the last reconciliation found; nothing before the first one."""
    for last in database.reconciliations[:1]:
        yield measures.RECONCILIATION_AGE, (), [((), (facts.at - last.at).total_seconds())]
        totals = [reader.name for reader in shown(database.readers) if reader.kind == "total"]
        drifts = [((text(name),), last.drift.get(name, 0)) for name in totals]
        yield measures.RECONCILIATION_DRIFT, ("reader",), drifts


def table(of: Table[T], labels: Labels, things: Sequence[tuple[Labels, T]]) -> Iterator[Measured]:
    """Every metric of a table, of each of these things."""
    for measure, value in of.items():
        yield measure, labels, [(values, value(thing)) for values, thing in things]


def family(measure: Measure, labels: Labels, samples: Iterable[tuple[Labels, float]]) -> Metric:
    """A metric with its samples. Its name says whether it is a counter, and what its unit is."""
    found = UNIT.search(measure.name)
    of = CounterMetricFamily if measure.name.endswith("_total") else GaugeMetricFamily
    name = PREFIX + measure.name.removesuffix("_total")
    metric = of(name, measure.help, labels=labels, unit=found[1] if found else "")
    for values, value in samples:
        metric.add_metric(values, value)
    return metric


def shown(readers: Iterable[Reader]) -> list[Reader]:
    """At most MOST_READERS of them: nobody's groups can crowd out this fleet's own readers."""
    first = sorted(readers, key=lambda reader: (not reader.is_ours, reader.kind, reader.name))
    return first[:MOST_READERS]


def text(name: str) -> str:
    """A label's value. Of what can't be printed, its code: a NUL ends Prometheus' reading."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()
