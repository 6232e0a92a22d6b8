"""Each line that is logged while a request is handled names the request's trace, if it has one."""

import logging

from flask import has_request_context, request

from api import parameters
from unified_log.tracing import fields


class OfRequest(logging.Filter):
    """Adds the field to a line; drops none."""

    def filter(self, record: logging.LogRecord) -> bool:
        if has_request_context():
            record.__dict__ |= fields([parameters.trace(request.environ)])
        return True


def name_traces() -> None:
    """Have all that this process logs pass through that filter."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(OfRequest())
