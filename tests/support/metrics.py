"""Reads metrics as Prometheus does, with the client library's own parsers."""

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from watch import metrics
from watch.facts import Facts

TEXT = "text/plain;version=0.0.4"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
AS_PROMETHEUS_ASKS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
PARSERS: dict[str, Callable[[str], Iterable[Metric]]] = {
    TEXT: text_families,
    OPENMETRICS: openmetrics_families,
    AS_PROMETHEUS_ASKS: openmetrics_families,
}
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series(facts: Facts, accept: str = OPENMETRICS) -> Series:
    body, _ = metrics.render(facts, accept)
    return parsed(body.decode(), accept)


def parsed(body: str, accept: str) -> Series:
    """Each series of an answer, with its value."""
    found: Series = {}
    for family in PARSERS[accept](body):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def value(told: Series, name: str, **labels: str) -> float | None:
    """The value of a series, named without its prefix; None where there is none."""
    return told.get((f"rocket_rides_{name}", frozenset(labels.items())))
