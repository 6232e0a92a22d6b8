"""A request's body: all of it, or none.

Half of "distance=539.837" is a distance, too. When a client breaks off, granian passes on an empty
body, and the Content-Length tells that from a client that sent nothing. A chunked body has no
length, and the server does not say whether it was complete, so it is refused.
"""

import time

from flask import Response, current_app, g, request
from werkzeug.exceptions import (
    BadRequest,
    LengthRequired,
    RequestEntityTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
)

from api.slow_clients import SlowClients

LIMIT = 16 * 1024  # bytes
CHARSETS = ("utf-8", "utf8", "us-ascii")


def whole_body() -> str:
    """The request's body, which must be UTF-8. Raises one of werkzeug's HTTPExceptions."""
    if "Transfer-Encoding" in request.headers:
        raise LengthRequired("send the body with its Content-Length")
    length = request.content_length or 0
    if length > LIMIT:
        raise RequestEntityTooLarge(f"the body may have at most {LIMIT} bytes")
    if request.headers.get("Content-Encoding"):
        raise UnsupportedMediaType("send the body without a Content-Encoding")
    if request.mimetype_params.get("charset", "utf-8").lower() not in CHARSETS:
        raise UnsupportedMediaType("send the body in UTF-8")
    slow_clients: SlowClients = current_app.extensions["slow_clients"]
    started = time.monotonic()
    g.body_was_read = True
    body = request.get_data()
    if len(body) < length:
        # We don't know which connection was cut. If it was another one, this one's client has left.
        if slow_clients.has_cut_since(started):
            raise RequestTimeout("the body did not arrive in time")
        raise BadRequest("the body is shorter than its Content-Length")
    try:
        return body.decode()
    except UnicodeDecodeError:  # werkzeug would take a form for an empty one
        raise BadRequest("send the body in UTF-8") from None


def end_unread(response: Response) -> Response:
    """Tell a client that is answered before its body was read that the connection ends.

    granian hangs up on a body that nobody has read, but does not always say so, and a client would
    send its next request on a connection that is being closed.
    """
    has_body = "Transfer-Encoding" in request.headers or request.content_length
    if has_body and "body_was_read" not in g:
        response.headers["Connection"] = "close"
    return response
