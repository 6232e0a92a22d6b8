"""The span of each request, where telemetry is exported. A record is staged as its child.

Probes, which only ask every few seconds whether the API is well, get none.
"""

from flask import Flask, Response, request

from rocket_rides import telemetry
from rocket_rides.telemetry import NOTHING, Span

SPAN = "rocket_rides.span"  # in WSGI's environ
PROBES = {"routes.healthz", "routes.readyz"}


def add_spans(app: Flask) -> None:
    """Give each request of `app` a span, unless it is a probe."""
    app.before_request(_begin)
    app.after_request(_note)
    app.teardown_request(_end)


def _begin() -> None:
    """Begin a span below the client's; the views are given it in place of the client's."""
    if request.endpoint in PROBES:
        return
    environ = request.environ
    route = request.url_rule.rule if request.url_rule else None
    span = telemetry.request_taken(environ, route)
    environ[SPAN] = span.__enter__()
    if span.trace:
        environ["HTTP_TRACEPARENT"], state = span.trace
        environ["HTTP_TRACESTATE"] = state or ""


def _note(response: Response) -> Response:
    _of_request().answered(response.status_code, response.status_code >= 500)
    return response


def _end(_: BaseException | None) -> None:
    _of_request().__exit__(None, None, None)


def _of_request() -> Span:
    span: Span = request.environ.get(SPAN, NOTHING)
    return span
