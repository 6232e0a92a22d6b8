"""Exporting spans and metrics with OpenTelemetry's SDK, over OTLP/HTTP, in its own threads.

Imported only where it is wanted (`rocket_rides.telemetry`). Whatever becomes of the collector, no
other thread waits for it, except at the end, for LONGEST_END: spans go into a queue, which drops
some when it is full. The collector is asked with a time-out and through no proxy, and only the head
of its answer is read. The OTEL_ variables of the SDK hold for all that is not said here.
"""

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing.util import Finalize
from threading import Event, Thread
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
from rocket_rides.tracing import Trace

logger = logging.getLogger("telemetry")

SCOPE = "rocket_rides"
TELL_EVERY = 60.0  # seconds
LONGEST_END = 1.0  # seconds, for what is left at the end of the process


class Trouble(logging.Handler):
    """Says that nothing is exported, and why: once a minute at most; and when it works again.

    The SDK's own log comes here, too: it repeats itself, with tracebacks.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._due = 0.0
        self._told = False

    def emit(self, record: logging.LogRecord) -> None:
        self.failed(" ".join(record.getMessage().split()))

    def failed(self, why: str) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due, self._told = now + TELL_EVERY, True
            logger.warning("spans and metrics are lost: %s", why)

    def worked(self) -> None:
        if self._told:
            self._told = False
            logger.info("spans and metrics are exported again")


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
    """Exports what this process does, as `service`. Raises ValueError for a bad OTEL_ variable."""

    def __init__(self, service: str) -> None:
        names = {"service.namespace": "rocket-rides", "service.name": service}
        own = OTELResourceDetector().detect().attributes
        self._resource = Resource.create({**names, **own})
        self._trouble = Trouble()
        of_sdk = logging.getLogger("opentelemetry")
        of_sdk.addHandler(self._trouble)
        of_sdk.propagate = False
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
    ) -> Recorded:
        """A span, below `parent`, or else below the span of the block that we are in."""
        below = (
            trace.set_span_in_context(trace.NonRecordingSpan(_context(parent))) if parent else None
        )
        return Recorded(
            self._tracer.start_span(
                name,
                below,
                trace.SpanKind[kind.upper()],
                attributes,
                # Without their states: while nothing can be exported, these would fill the memory.
                [
                    trace.Link(_context(link._replace(state=None)))
                    for link in islice(links, telemetry.MOST_LINKS)
                ],
            ),
            parent,
        )

    def measure(self, metrics: Iterable[Metric], values: Measure) -> None:
        """Export the metrics, every OTEL_METRIC_EXPORT_INTERVAL milliseconds."""
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
