"""Exporting spans and metrics with OpenTelemetry's SDK, over OTLP/HTTP, in its own threads.

Imported only where it is wanted (`rocket_rides.telemetry`). Whatever becomes of the collector, no
other thread waits for it, except at the end, for LONGEST_END: spans go into a queue, which drops
some when it is full. The collector is asked with a time-out and through no proxy, and only the head
of its answer is read. The OTEL_ variables of the SDK hold for all that is not said here.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import islice
from multiprocessing.util import Finalize
from threading import TIMEOUT_MAX, Event, Thread
from typing import Any
from urllib.parse import urlsplit

import requests
from opentelemetry import context, propagate, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler
from opentelemetry.trace import SpanKind, StatusCode
from requests.adapters import HTTPAdapter

from rocket_rides.trouble import Trouble
from unified_log.tracing import Trace

SCOPE = "rocket_rides"
LONGEST_END = 1.0  # seconds, for what is left at the end of the process
# Of the exporter for each; the special variable comes first.
PROTOCOLS = ("OTEL_EXPORTER_OTLP_{}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
OURS = "http/protobuf"
# Milliseconds for which the SDK's threads pause. They would die of one that no thread can wait.
PAUSES = ("OTEL_BSP_SCHEDULE_DELAY", "OTEL_METRIC_EXPORT_INTERVAL")
# Regular expressions that the instrumentations compile with each request.
PATTERNS = re.compile("OTEL_(?:PYTHON_.*EXCLUDED_URLS|INSTRUMENTATION_HTTP_CAPTURE_HEADERS_.*)")
# The SDK keeps this many links of a span. A batch may have more records: see its message_count.
MOST_LINKS = 128

Span = AbstractContextManager[None]


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


class Exporter:
    """Exports what this process does, as `service`; tells `trouble` what is lost.

    Raises ValueError, or what else the SDK raises, for a bad OTEL_ variable.
    """

    def __init__(self, service: str, trouble: Trouble) -> None:
        _require_sensible_variables()
        names = {"service.namespace": "rocket-rides", "service.name": service}
        own = OTELResourceDetector().detect().attributes
        self._resource = Resource.create({**names, **own})
        self._trouble = trouble
        # Else it warns of states that it can't hold: see `current`.
        logging.getLogger("opentelemetry.trace").setLevel(logging.ERROR)
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        self.tracers = self._provider()
        self._tracer = self.tracers.get_tracer(SCOPE)
        # Raises what each span would raise, such as for a limit that is no number it can use.
        with self.batch_taken("", "", 1, [Trace(f"00-{1:032x}-{1:016x}-00")]):
            pass
        self._spans = BatchSpanProcessor(OTLPSpanExporter(session=self._session()))
        self.tracers.add_span_processor(self._spans)
        self._meters: MeterProvider | None = None
        # At its end a process can't start a thread any more.
        self._asked, self._ended = Event(), Event()
        Thread(target=self._flush, name="telemetry's end", daemon=True).start()
        # Not by atexit: a process that was forked by multiprocessing, as the API's are, skips that.
        Finalize(None, self.end, exitpriority=0)

    def children(self) -> TracerProvider:
        """Makes spans only below others: for statements, those of requests, and of no probe."""
        tracers = self._provider(ParentBased(ALWAYS_OFF))
        tracers.add_span_processor(self._spans)
        return tracers

    @contextmanager
    def span(
        self,
        name: str,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, str | int] | None = None,
        links: Sequence[trace.Link] = (),
    ) -> Iterator[None]:
        """A span of a block. Of an error it has the class alone."""
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, links=links, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(StatusCode.ERROR)
                raise

    def batch_sent(self, stream: str, records: int, traces: Iterable[Trace]) -> Span:
        """A batch that goes into the log."""
        return self._batch("send", SpanKind.PRODUCER, stream, records, traces)

    def batch_taken(self, stream: str, reader: str, records: int, traces: Iterable[Trace]) -> Span:
        """A batch of the log that a reader, or a consumer group, processes."""
        group = {"messaging.consumer.group.name": reader}
        return self._batch("process", SpanKind.CONSUMER, stream, records, traces, group)

    def current(self, clients: Trace | None) -> Trace | None:
        """The span that we are in, if any, else the client's. The client's state goes on.

        That is as it came, since the SDK can't hold all states that the standard allows.
        """
        headers: dict[str, str] = {}
        propagate.inject(headers)
        if parent := headers.get("traceparent"):
            return Trace(parent, clients.state if clients else None)
        return clients

    @contextmanager
    def below(self, parent: Trace) -> Iterator[None]:
        """A block whose spans are below this one, which another process may have made."""
        token = context.attach(propagate.extract(parent.headers()))
        try:
            yield
        finally:
            context.detach(token)

    def meter(self) -> Meter:
        """What makes metrics, which are exported every OTEL_METRIC_EXPORT_INTERVAL milliseconds."""
        # Raises what it can't read, before there is a reader, which would ask it for ever.
        MeterProvider(shutdown_on_exit=False)
        exporter = OTLPMetricExporter(session=self._session())
        reader = PeriodicExportingMetricReader(exporter)
        self._meters = MeterProvider([reader], self._resource, shutdown_on_exit=False)
        return self._meters.get_meter(SCOPE)

    def end(self) -> None:
        """Export what is left, as far as that takes no longer than LONGEST_END."""
        self._asked.set()
        self._ended.wait(LONGEST_END)

    def _flush(self) -> None:
        self._asked.wait()
        self.tracers.shutdown()
        if self._meters:
            with suppress(Exception):  # it raises when it takes too long
                self._meters.shutdown(LONGEST_END * 1000)
        self._ended.set()

    def _batch(
        self,
        operation: str,
        kind: SpanKind,
        stream: str,
        records: int,
        traces: Iterable[Trace],
        more: Mapping[str, str] | None = None,
    ) -> Span:
        if not records:  # such as of types that the reader passes over
            return nullcontext()
        attributes: dict[str, str | int] = {
            "messaging.system": "redis",
            "messaging.operation.name": operation,
            "messaging.operation.type": operation,
            "messaging.destination.name": stream,
            "messaging.batch.message_count": records,
            **(more or {}),
        }
        links = [_link(each) for each in islice(traces, MOST_LINKS)]
        return self.span(f"{operation} {stream}", kind, attributes, links)

    def _provider(self, sampler: Sampler | None = None) -> TracerProvider:
        # An exception's text may hold a receiver's URL, and so its token: spans have no events.
        return TracerProvider(
            sampler, self._resource, shutdown_on_exit=False, span_limits=SpanLimits(max_events=0)
        )

    def _session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False  # no proxy, no password from ~/.netrc
        for scheme in ("http://", "https://"):
            session.mount(scheme, Collector(self._trouble))
        return session


def _link(to: Trace) -> trace.Link:
    """Without its state: while nothing can be exported, these would fill the memory."""
    linked = propagate.extract({"traceparent": to.parent})
    return trace.Link(trace.get_current_span(linked).get_span_context())


def _require_sensible_variables() -> None:
    """Raise ValueError for a variable that is read without a look at it, or with each request."""
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
    for name in filter(PATTERNS.fullmatch, os.environ):
        try:
            re.compile("|".join(each.strip() for each in os.environ[name].split(",")))
        except re.error as error:
            raise ValueError(f"{name} is no list of regular expressions: {error}") from None
