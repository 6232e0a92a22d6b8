"""Spans and metrics for OpenTelemetry, where OTEL_EXPORTER_OTLP_ENDPOINT is set; else nothing.

Each function below returns the span of one sort of work, named and described as OpenTelemetry's
semantic conventions have it. While nothing is exported, that is `NOTHING`, one object for all, and
no package of OpenTelemetry is imported. `rocket_rides.otlp` alone imports them.

A span of one ride's work is a child in the ride's trace. A batch has many rides: its span links to
those of its records.
"""

import gc
import logging
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self
from urllib.parse import urlsplit
from wsgiref.types import WSGIEnvironment

from pydantic import ValidationError

from rocket_rides.settings import Settings
from rocket_rides.trouble import Trouble
from rocket_rides.urls import http
from unified_log import spans
from unified_log.errors import in_one_line
from unified_log.tracing import Trace, parse

if TYPE_CHECKING:
    import psycopg

    from rocket_rides.otlp import Exporter

logger = logging.getLogger(__name__)

Attributes = dict[str, str | int]
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"}
# The SDK keeps this many links of a span. A batch may have more records: see its message_count.
MOST_LINKS = 128
NOT_EXPORTED = "OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported: %s"
HOW_TO_INSTALL = "pip install -r requirements/telemetry.txt"


class Span:
    """One piece of work, as a context manager. This one tells nobody."""

    # The context for whoever is called next; None if this span is not part of any trace.
    trace: Trace | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """It is over; `error` says that it failed."""

    def answered(self, status: int, is_error: bool) -> None:
        """The HTTP request that it is about was answered with this status."""

    def failed(self, why: str) -> None:
        """It failed; `why` is one of few values, such as a class of errors."""


class Metric(NamedTuple):
    """What is measured: as in OpenTelemetry, `unit` is a UCUM code."""

    name: str
    help: str
    unit: str
    is_counter: bool


# The values of a metric now, by its name, each with its labels.
Measure = Callable[[str], Iterable[tuple[float, Mapping[str, str]]]]

NOTHING = Span()
_exporter: "Exporter | None" = None


def begin(config: Settings, service: str) -> None:
    """Export from now on, as `service`, if the settings say so.

    Call it after a fork, since exporting takes threads. If nothing can be exported, because a
    package is missing or one of OpenTelemetry's variables makes no sense, a warning says so: a
    platform may set them for all that runs there, and no ride waits for telemetry.
    """
    global _exporter
    if config.otel_exporter_otlp_endpoint:
        try:
            http(config.otel_exporter_otlp_endpoint)
            trouble = Trouble()
            from rocket_rides.otlp import Exporter

            _exporter = Exporter(f"rocket-rides-{service}", trouble)
            spans.register(batch_sent, batch_taken)
        except ModuleNotFoundError as missing:
            logger.warning(NOT_EXPORTED, f"{missing}; {HOW_TO_INSTALL}")
        except ValidationError as error:  # whose text has the URL, and what may be a password
            logger.warning(NOT_EXPORTED, error.errors()[0]["msg"])
        except Exception as error:
            logger.warning(NOT_EXPORTED, in_one_line(error))
        gc.freeze()  # as `service.begin` did with what was imported by then


def is_on() -> bool:
    """Whether this process exports anything."""
    return _exporter is not None


def end() -> None:
    """Export what is left, for a second at most. When Python exits, that happens by itself."""
    if _exporter:
        _exporter.end()


def measure(metrics: Iterable[Metric], values: Measure) -> None:
    """Export these metrics; their `values` are asked for, in a thread, each time."""
    if _exporter:
        try:
            _exporter.measure(metrics, values)
        except Exception as error:  # such as an OTEL_METRIC_EXPORT_INTERVAL that is no number
            logger.warning(NOT_EXPORTED, in_one_line(error))


def request_taken(environ: WSGIEnvironment, route: str | None) -> Span:
    """A request that we answer; `route` is the template of its path, None if there is none."""
    if _exporter is None:
        return NOTHING
    method = environ["REQUEST_METHOD"]
    attributes: Attributes = {
        "http.request.method": method if method in METHODS else "_OTHER",
        "url.path": environ["PATH_INFO"],
        "url.scheme": environ["wsgi.url_scheme"],
        "server.address": environ["SERVER_NAME"],
        "server.port": int(environ["SERVER_PORT"]),
    }
    name = "HTTP" if method not in METHODS else method
    if route:
        name = f"{name} {route}"
        attributes["http.route"] = route
    parent = parse(environ.get("HTTP_TRACEPARENT"), environ.get("HTTP_TRACESTATE"))
    return _exporter.span(name, "server", attributes, parent)


def request_sent(url: str, parent: Trace | None) -> Span:
    """A POST that we send."""
    if _exporter is None:
        return NOTHING
    parts = urlsplit(url)
    attributes: Attributes = {
        "http.request.method": "POST",
        "url.full": parts._replace(query="").geturl(),  # a receiver's token may be in it
        "server.address": parts.hostname or "",
        "server.port": parts.port or (443 if parts.scheme == "https" else 80),
    }
    return _exporter.span("POST", "client", attributes, parent)


def statement(name: str, connection: "psycopg.Connection") -> Span:
    """A prepared statement that Postgres executes."""
    if _exporter is None:
        return NOTHING
    summary = f"EXECUTE {name}"
    attributes: Attributes = {
        "db.system.name": "postgresql",
        "db.namespace": connection.info.dbname,
        "db.operation.name": "EXECUTE",
        "db.query.summary": summary,
        "server.address": connection.info.host,
        "server.port": connection.info.port,
    }
    return _exporter.span(summary, "client", attributes)


def batch_sent(stream: str, records: int, traces: Iterable[Trace]) -> Span:
    """A batch that goes into the log."""
    return _batch("send", "producer", stream, records, traces, {})


def batch_taken(stream: str, reader: str, records: int, traces: Iterable[Trace]) -> Span:
    """A batch of the log that a reader, or a consumer group, processes."""
    attributes: Attributes = {"messaging.consumer.group.name": reader}
    return _batch("process", "consumer", stream, records, traces, attributes)


def stage(name: str) -> Span:
    """A part of a job, below the part that it is in."""
    return _exporter.span(name, "internal", {}) if _exporter else NOTHING


def _batch(
    operation: str,
    kind: Literal["producer", "consumer"],
    stream: str,
    records: int,
    traces: Iterable[Trace],
    attributes: Attributes,
) -> Span:
    if _exporter is None or not records:  # such as of types that the reader passes over
        return NOTHING
    attributes |= {
        "messaging.system": "redis",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": stream,
        "messaging.batch.message_count": records,
    }
    return _exporter.span(f"{operation} {stream}", kind, attributes, links=traces)
