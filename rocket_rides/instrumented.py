"""What OpenTelemetry's own instrumentations are told: imported only where spans are exported.

Their metrics go nowhere, for `watch` exports those of the whole fleet. No attribute has a password
or a token, wherever in a URL or a Host it was.
"""

from threading import local
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import Span, SpanProcessor
from opentelemetry.trace import StatusCode

from rocket_rides.otlp import Exporter

if TYPE_CHECKING:
    from flask import Flask
    from sqlalchemy import Engine
    from sqlalchemy.engine import ExceptionContext
    from yarl import URL

PROBES = r"^\w+://[^/?]*/(?:healthz|readyz)(?:\?|$)"  # URLs
# Attributes of a request that hold a Host or a URL, by any version of the conventions.
OLD = {"net.host.name", "http.host", "http.target", "http.url"}
FROM_A_URL = OLD | {"server.address", "url.query"}
NO_METERS = NoOpMeterProvider()
UNIQUE_VIOLATION = "23505"  # SQLSTATE


class Failures(SpanProcessor):
    """Says why a statement failed, which its instrumentation does not say.

    That something is there already is no failure: mostly a request was repeated.
    """

    def __init__(self) -> None:
        self._newest = local()  # of those that this thread has begun

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self._newest.span = span

    def tell(self, error: "ExceptionContext") -> None:
        """For SQLAlchemy's event `handle_error`, before the instrumentation ends the span."""
        span: Span | None = getattr(self._newest, "span", None)
        state = getattr(error.original_exception, "sqlstate", None)
        if span and span.is_recording() and state:
            span.set_attribute("db.response.status_code", state)
            if state == UNIQUE_VIOLATION:
                span.set_status(StatusCode.OK)


def api(app: "Flask", engine: "Engine", exporter: Exporter) -> None:
    """The requests that `app` answers, but for probes, and what each asks of the engine."""
    from opentelemetry.instrumentation.flask import FlaskInstrumentor
    from opentelemetry.instrumentation.sqlalchemy.engine import EngineTracer
    from sqlalchemy import event

    FlaskInstrumentor.instrument_app(  # type: ignore[no-untyped-call]
        app,
        response_hook=_hide,
        tracer_provider=exporter.tracers,
        meter_provider=NO_METERS,
        excluded_urls=PROBES,
        enable_commenter=False,
    )
    failures = Failures()
    event.listen(engine, "handle_error", failures.tell)
    # What SQLAlchemyInstrumentor makes for an engine. That also wraps what makes engines, for which
    # SQLAlchemy 2.1 needs greenlet, and all that connect: a span for each, though from a pool.
    scope = "opentelemetry.instrumentation.sqlalchemy"
    unused = NO_METERS.get_meter(scope).create_up_down_counter("connections")
    tracer = exporter.children(failures).get_tracer(scope)
    EngineTracer(tracer, engine, unused)  # type: ignore[no-untyped-call]


def client(exporter: Exporter) -> None:
    """The requests that aiohttp sends, by sessions that are made from now on."""
    from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor

    AioHttpClientInstrumentor().instrument(
        url_filter=_bare, tracer_provider=exporter.tracers, meter_provider=NO_METERS
    )


def _bare(url: "URL") -> str:
    return str(url.with_user(None).with_query(None).with_fragment(None))


def _hide(span: Any, *_: Any) -> None:
    """Take a query, and a user with a password, out of a request's attributes."""
    attributes = (isinstance(span, Span) and span.attributes) or {}  # none if it is not sampled
    for name in FROM_A_URL.intersection(attributes):
        path = "" if name == "url.query" else str(attributes[name]).partition("?")[0]
        span.set_attribute(name, path.rpartition("@")[2])
