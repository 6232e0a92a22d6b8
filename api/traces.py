"""The trace that a request belongs to: for its record, and for the lines that are logged meanwhile.

Where telemetry is exported, a request has a span of its own, and its record is that span's child.
"""

import logging

from flask import has_request_context, request

from rocket_rides import telemetry
from unified_log import tracing
from unified_log.tracing import Trace


def trace() -> Trace | None:
    """The request's own span, or else the client's; None if neither is there.

    A malformed header is ignored, as the W3C has it.
    """
    parent, state = (request.headers.get(name) for name in ("traceparent", "tracestate"))
    return telemetry.current(tracing.parse(parent, state))


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
