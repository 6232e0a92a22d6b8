"""What OpenTelemetry's own instrumentations are told: imported only where spans are exported.

Their metrics go nowhere, for `watch` exports those of the whole fleet. No attribute has a password
or a token, wherever in a URL or a Host it was.
"""

import os
from typing import TYPE_CHECKING, Any

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import StatusCode

from rocket_rides.otlp import Exporter

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

    from flask import Flask
    from sqlalchemy import Engine
    from sqlalchemy.engine import ExceptionContext
    from yarl import URL

PROBES = r"^\w+://[^/?]*/(?:healthz|readyz)(?:\?|$)"  # URLs
EXCLUDED = "OTEL_PYTHON_FLASK_EXCLUDED_URLS"  # more of them
# Attributes of a request that hold a Host or a URL, by any version of the conventions.
OLD = {"net.host.name", "http.host", "http.target", "http.url"}
FROM_A_URL = OLD | {"server.address", "url.query"}
NO_METERS = NoOpMeterProvider()
UNIQUE_VIOLATION = "23505"  # SQLSTATE


def api(app: "Flask", engine: "Engine", exporter: Exporter) -> None:
    """The requests that `app` answers, but for probes, and what each asks of the engine."""
    from opentelemetry.instrumentation.flask import FlaskInstrumentor
    from opentelemetry.instrumentation.sqlalchemy.engine import EngineTracer
    from sqlalchemy import event

    FlaskInstrumentor.instrument_app(  # type: ignore[no-untyped-call]
        app,
        request_hook=_name_path,
        response_hook=_hide,
        tracer_provider=exporter.tracers,
        meter_provider=NO_METERS,
        excluded_urls=",".join(filter(None, [PROBES, os.environ.get(EXCLUDED)])),
        enable_commenter=False,
    )
    event.listen(engine, "handle_error", _failed)  # before the instrumentation's own
    # What SQLAlchemyInstrumentor makes for an engine. That also wraps what makes engines, for which
    # SQLAlchemy 2.1 needs greenlet, and all that connect: a span for each, though from a pool.
    scope = "opentelemetry.instrumentation.sqlalchemy"
    unused = NO_METERS.get_meter(scope).create_up_down_counter("connections")
    tracer = exporter.children().get_tracer(scope)
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


def _name_path(span: Any, environ: "WSGIEnvironment") -> None:
    """The path that was asked for: the instrumentation looks where granian does not put it."""
    span.set_attribute("url.path", environ["PATH_INFO"])


def _failed(error: "ExceptionContext") -> None:
    """Say by SQLSTATE and class why a statement failed, and end its span.

    The instrumentation would export the whole message, in which Postgres shows a row's values. That
    something is there already is no failure: mostly a request was repeated.
    """
    if span := getattr(error.execution_context, "_otel_span", None):
        error.execution_context._otel_span = None  # type: ignore[union-attr]
        cause = error.original_exception
        if state := getattr(cause, "sqlstate", None):
            span.set_attribute("db.response.status_code", state)
        if state == UNIQUE_VIOLATION:
            span.set_status(StatusCode.OK)
        else:
            span.set_status(StatusCode.ERROR, type(cause).__name__)
        span.end()
