"""The trace that a request belongs to: for its record, and for the lines that are logged meanwhile.

Where telemetry is exported, a request has a span of its own, and its record is that span's child.
Probes, which only ask every few seconds whether the API is well, get none.
"""

import logging

from flask import Flask, Response, g, has_request_context, request

from rocket_rides import telemetry
from rocket_rides.telemetry import NOTHING, Span
from unified_log import tracing
from unified_log.tracing import Trace

PROBES = {"routes.healthz", "routes.readyz"}


def trace() -> Trace | None:
    """The request's own span, or else the client's; None if neither is there.

    A malformed header is ignored, as the W3C has it.
    """
    parent, state = (request.headers.get(name) for name in ("traceparent", "tracestate"))
    return _span().trace or tracing.parse(parent, state)


class OfRequest(logging.Filter):
    """Adds the trace's id to a line; drops none."""

    def filter(self, record: logging.LogRecord) -> bool:
        if has_request_context():
            record.__dict__ |= tracing.fields([trace()])
        return True


def name_traces() -> None:
    """Have all that this process logs pass through that filter."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(OfRequest())


def add_spans(app: Flask) -> None:
    """Give each request of `app` a span, unless it is a probe."""
    app.before_request(_begin)
    app.after_request(_note)
    app.teardown_request(_end)


def _begin() -> None:
    if request.endpoint not in PROBES:
        route = request.url_rule.rule if request.url_rule else None
        g.span = telemetry.request_taken(request.environ, route).__enter__()


def _note(response: Response) -> Response:
    _span().answered(response.status_code, response.status_code >= 500)
    return response


def _end(_: BaseException | None) -> None:
    _span().__exit__(None, None, None)


def _span() -> Span:
    span: Span = g.get("span", NOTHING)
    return span
