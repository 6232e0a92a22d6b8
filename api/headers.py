"""Refuses requests whose headers can be read in two ways.

Two programs in a row that read a request differently, such as a gateway and this one, can be made
to disagree about what was asked, and for whom.

WSGI folds `-` and `_` in the names of headers into one, and granian passes on the last of those
that it folded. So nothing here tells an `Idempotency_Key` from an `Idempotency-Key`: a gateway
must, as `cells/router/haproxy.cfg` does. Granian's other interfaces do pass names on as they came,
and cost a POST 40 % more of the API's processor time, since each request goes through an event
loop to the thread that answers it.
"""

import os
import re
from functools import lru_cache

from flask import request
from werkzeug.exceptions import BadRequest

# So WSGI names headers. In its environ, variables of the process's own environment lie below them.
HEADER = "HTTP_"
CONTENT = {"CONTENT_TYPE", "CONTENT_LENGTH"}
# WSGI has no HTTP_ before these two, so under it they had an underscore.
UNDERSCORED = {"HTTP_CONTENT_LENGTH", "HTTP_CONTENT_TYPE"}

# RFC 3986's host and port, with RFC 6874's zone, but without a comma: it joins the values of a
# header that was sent twice.
_HOST = re.compile(
    r"(?:\[[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9._~%-]+)?\]|[A-Za-z0-9._~!$&'()*+;=%-]+)(?::[0-9]*)?"
)


def forget_variables() -> None:
    """Keep this process's own variables from standing for headers that a request lacks."""
    for name in [*os.environ]:
        if name.startswith(HEADER) or name in CONTENT:
            del os.environ[name]


def refuse_ambiguous() -> None:
    """Raise BadRequest for such headers: for Flask's `before_request`."""
    # RFC 9112, 3.2. Granian passes on no header, an empty one, and one that is not ASCII all as
    # empty. Before HTTP/1.1 there need not be one.
    host = request.headers.get("Host", "")
    if not _is_host(host) and (host or request.environ["SERVER_PROTOCOL"] == "HTTP/1.1"):
        raise BadRequest("send one Host header, with a host and perhaps a port")
    if not UNDERSCORED.isdisjoint(request.environ):
        raise BadRequest("write Content-Type and Content-Length with a hyphen")


@lru_cache(maxsize=16)  # few distinct values in practice
def _is_host(value: str) -> bool:
    return _HOST.fullmatch(value) is not None
