"""Exporting spans and metrics with OpenTelemetry's SDK, over OTLP/HTTP, in its own threads.

Imported only where it is wanted (`rocket_rides.telemetry`). Whatever becomes of the collector, no
other thread waits for it, except at the end, for LONGEST_END: spans go into a queue, which drops
some when it is full. The collector is asked with a time-out and through no proxy, and only the head
of its answer is read. The OTEL_ variables of the SDK hold for all that is not said here.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing.util import Finalize
from threading import TIMEOUT_MAX, Event, Thread
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import requests
from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
    OTLPMetricExporter,
)
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter,
)
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.span import TraceState
from requests.adapters import HTTPAdapter

from rocket_rides import telemetry
from rocket_rides.telemetry import Attributes, Measure, Metric
from rocket_rides.trouble import Trouble
from unified_log.errors import in_one_line
from unified_log.tracing import Trace

SCOPE = "rocket_rides"
LONGEST_END = 1.0  # seconds, for what is left at the end of the process
# Of the exporter for each; the special variable comes first.
PROTOCOLS = ("OTEL_EXPORTER_OTLP_{}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
OURS = "http/protobuf"
# Milliseconds for which the SDK's threads pause. They would die of one that no thread can wait.
PAUSES = ("OTEL_BSP_SCHEDULE_DELAY", "OTEL_METRIC_EXPORT_INTERVAL")


class Collector(HTTPAdapter):
    """Sends one request; of the answer it reads the head alone, for a body might never end."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self._trouble = trouble

    def send(self, request: requests.PreparedRequest, *_: Any, **how: Any) -> requests.Response:
        """The answer. Raises requests.RequestException, also where it is a redirection."""
        whose = urlsplit(request.url or "").netloc.rpartition("@")[2]  # without a password
        try:
            answer = super().send(request, **how | {"stream": True, "proxies": None})
        except Exception as error:
            self._trouble.failed(f"{whose} can't be reached ({type(error).__name__})")
            raise
        answer.close()
        status = answer.status_code
        if status < 300:
            self._trouble.worked()
        else:
            self._trouble.failed(f"{whose} answers {status}")
        if 300 <= status < 400:  # the SDK would take it for a success
            raise requests.TooManyRedirects
        return answer


class Recorded(telemetry.Span):
    """A span that is exported once it is over, unless it is not sampled."""

    def __init__(self, span: trace.Span, parent: Trace | None) -> None:
        self._span = span
        found = span.get_span_context()
        if found.is_valid:
            ids = f"{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"
            # The SDK can't hold all states that the standard allows: the client's goes on as it is.
            self.trace = Trace(f"00-{ids}", parent.state if parent else None)

    def __enter__(self) -> Self:
        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        context.detach(self._token)
        if error:
            error = getattr(error, "orig", error)  # the driver's, in SQLAlchemy's
            self.failed(type(error).__qualname__)
            if state := getattr(error, "sqlstate", None):
                self._span.set_attribute("db.response.status_code", state)
        self._span.end()

    def answered(self, status: int, is_error: bool) -> None:
        self._span.set_attribute("http.response.status_code", status)
        if is_error:
            self.failed(str(status))

    def failed(self, why: str) -> None:
        self._span.set_attribute("error.type", why)
        self._span.set_status(trace.StatusCode.ERROR)


class Exporter:
    """Exports what this process does, as `service`; tells `trouble` what is lost.

    Raises ValueError, or what else the SDK raises, for a bad OTEL_ variable.
    """

    def __init__(self, service: str, trouble: Trouble) -> None:
        _require_what_the_sdk_does_not()
        names = {"service.namespace": "rocket-rides", "service.name": service}
        own = OTELResourceDetector().detect().attributes
        self._resource = Resource.create({**names, **own})
        self._trouble = trouble
        # Else it warns of states that it can't hold: see Recorded.
        logging.getLogger("opentelemetry.trace").setLevel(logging.ERROR)
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        spans = BatchSpanProcessor(OTLPSpanExporter(session=self._session()))
        self._tracers = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(spans)
        self._tracer = self._tracers.get_tracer(SCOPE)
        self._meters: MeterProvider | None = None
        # At its end a process can't start a thread any more.
        self._asked, self._ended = Event(), Event()
        Thread(target=self._flush, name="telemetry's end", daemon=True).start()
        # Not by atexit: a process that was forked by multiprocessing, as the API's are, skips that.
        Finalize(None, self.end, exitpriority=0)

    def span(
        self,
        name: str,
        kind: Literal["server", "client", "producer", "consumer", "internal"],
        attributes: Attributes,
        parent: Trace | None = None,
        links: Iterable[Trace] = (),
    ) -> telemetry.Span:
        """A span, below `parent`, or else below the span of the block that we are in.

        What the SDK raises, as for a limit that is no number it can use, is told: it fails no ride.
        """
        below = (
            trace.set_span_in_context(trace.NonRecordingSpan(_context(parent))) if parent else None
        )
        # Without their states: while nothing can be exported, these would fill the memory.
        bare = [
            trace.Link(_context(link._replace(state=None)))
            for link in islice(links, telemetry.MOST_LINKS)
        ]
        try:
            span = self._tracer.start_span(
                name, below, trace.SpanKind[kind.upper()], attributes, bare
            )
        except Exception as error:
            self._trouble.failed(in_one_line(error))
            return telemetry.NOTHING
        return Recorded(span, parent)

    def measure(self, metrics: Iterable[Metric], values: Measure) -> None:
        """Export the metrics, every OTEL_METRIC_EXPORT_INTERVAL milliseconds."""
        # Raises what it can't read, before there is a reader, which would ask it for ever.
        MeterProvider(shutdown_on_exit=False)
        exporter = OTLPMetricExporter(session=self._session())
        reader = PeriodicExportingMetricReader(exporter)
        self._meters = MeterProvider([reader], self._resource, shutdown_on_exit=False)
        meter = self._meters.get_meter(SCOPE)
        for metric in metrics:

            def observe(_: CallbackOptions, name: str = metric.name) -> Iterator[Observation]:
                return (Observation(value, labels) for value, labels in values(name))

            kind = (
                meter.create_observable_counter
                if metric.is_counter
                else meter.create_observable_gauge
            )
            kind(metric.name, [observe], metric.unit, metric.help)

    def end(self) -> None:
        """Export what is left, as far as that takes no longer than LONGEST_END."""
        self._asked.set()
        self._ended.wait(LONGEST_END)

    def _flush(self) -> None:
        self._asked.wait()
        self._tracers.shutdown()
        if self._meters:
            with suppress(Exception):  # it raises when it takes too long
                self._meters.shutdown(LONGEST_END * 1000)
        self._ended.set()

    def _session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False  # no proxy, no password from ~/.netrc
        for scheme in ("http://", "https://"):
            session.mount(scheme, Collector(self._trouble))
        return session


def _require_what_the_sdk_does_not() -> None:
    """Raise ValueError for a variable that the SDK reads without looking at it."""
    for signal in ("TRACES", "METRICS"):
        names = [name.format(signal) for name in PROTOCOLS]
        for name, given in [(name, os.environ[name]) for name in names if os.environ.get(name)][:1]:
            if given != OURS:
                raise ValueError(f"{name} is {given}, and only {OURS} is spoken here")
    for name in PAUSES:
        try:
            pause = float(os.environ.get(name) or 0)
        except ValueError:  # which the SDK takes for its default
            continue
        if not pause <= TIMEOUT_MAX * 1000:
            raise ValueError(f"{name} is {pause:g}, and no thread can wait so long")


def _context(of: Trace) -> trace.SpanContext:
    """A trace's context, in OpenTelemetry's class."""
    _, trace_id, span_id, flags = of.parent.split("-")
    return trace.SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(int(flags, 16)),
        trace_state=TraceState.from_header([of.state]) if of.state else None,
    )
