"""A collector of OpenTelemetry: what was exported to it, over real OTLP/HTTP."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Proto

from tests.support.metrics import Series
from tests.support.receiver import Answer, Receiver

Attributes = dict[str, str | int]


@dataclass(frozen=True)
class Span:
    """A span as it was exported. Ids are hexadecimal, as in a `traceparent`."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str  # empty: none
    links: list[tuple[str, str]]  # traces and spans
    attributes: Attributes
    failed: bool


class Collector(Receiver):
    """It takes everything, unless its `behaviour` says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.behaviour = Answer(200)

    @property
    def settings(self) -> dict[str, str]:
        """What leads a process to it, and has it export often."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
        }

    def spans(self, service: str = "", name: str = "") -> list[Span]:
        """Those of a service, or of a name that begins so; as they came."""
        return [
            span
            for span in self._spans()
            if span.service.endswith(service) and span.name.startswith(name)
        ]

    def metrics(self) -> Series:
        """The newest samples."""
        bodies = [each.body for each in list(self.requests) if each.path == "/v1/metrics"]
        told = ExportMetricsServiceRequest.FromString(bodies[-1]) if bodies else None
        found: Series = {}
        for resource in told.resource_metrics if told else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                for point in (metric.sum if metric.HasField("sum") else metric.gauge).data_points:
                    labels = _attributes(point.attributes).items()
                    key = metric.name, frozenset((label, str(value)) for label, value in labels)
                    found[key] = point.as_double
        return found

    def _spans(self) -> Iterator[Span]:
        for request in list(self.requests):
            if request.path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(request.body).resource_spans:
                    service = _attributes(resource.resource.attributes)["service.name"]
                    for scope in resource.scope_spans:
                        yield from (_span(str(service), span) for span in scope.spans)


def _span(service: str, span: Proto) -> Span:
    return Span(
        service,
        span.name,
        Proto.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        _attributes(span.attributes),
        span.status.code == span.status.STATUS_CODE_ERROR,
    )


def _attributes(given: Iterable[KeyValue]) -> Attributes:
    found: Attributes = {}
    for pair in given:
        value = pair.value
        found[pair.key] = value.int_value if value.HasField("int_value") else value.string_value
    return found
