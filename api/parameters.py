"""Parses and checks what a client sends: distance or stars, idempotency key, and trace context.

It reads WSGI's `environ`, not Flask's request (`api.lean` says why).
"""

import json
import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.types import WSGIEnvironment

from werkzeug.exceptions import (
    BadRequest,
    LengthRequired,
    RequestEntityTooLarge,
    UnprocessableEntity,
    UnsupportedMediaType,
)
from werkzeug.http import parse_options_header

from api.slow_clients import read_body
from rocket_rides import distance
from unified_log import tracing

BODY_LIMIT = 16 * 1024  # bytes
KEY_LENGTH = 255  # characters, at most: the schema says so too
URLENCODED = "application/x-www-form-urlencoded"
CHARSETS = ("utf-8", "utf8", "us-ascii")

# No comma: it joins the values of a header that was sent twice.
_KEY = re.compile(rf"[\x21-\x2b\x2d-\x7e]{{1,{KEY_LENGTH}}}")
_STARS = re.compile(r"[1-5](\.0*)?")  # 4.0 is an integer in JSON


def ride_distance(environ: WSGIEnvironment) -> Decimal:
    """The `distance` of a form or a JSON object, in metres, to the millimetre.

    Raises one of werkzeug's HTTPExceptions, with a message for the client.
    """
    try:
        return distance.parse(_the_only("distance", environ))
    except ValueError as refusal:
        raise UnprocessableEntity(str(refusal)) from None


def stars(environ: WSGIEnvironment) -> int:
    """The `stars` of a form or a JSON object, from 1 to 5. Raises as `ride_distance` does."""
    given = _the_only("stars", environ)
    if not _STARS.fullmatch(given):
        raise UnprocessableEntity("stars must be 1, 2, 3, 4 or 5")
    return int(given[0])


def _the_only(name: str, environ: WSGIEnvironment) -> str:
    """The value that a form or a JSON object gives a name: a text, or a number's exact digits."""
    mimetype, charset = _media_type(environ.get("CONTENT_TYPE", ""))
    body = _whole_body(environ, charset)
    if mimetype == URLENCODED:
        fields = parse_qsl(body.decode(errors="replace"), keep_blank_values=True)
    elif mimetype == "application/json":
        fields = _json_fields(body)
    elif not mimetype and not body:
        fields = []
    else:
        raise UnsupportedMediaType(f"send the {name} as a form field or in a JSON object")
    given = [value for field, value in fields if field == name]
    if any(field.startswith(f"{name}[") for field, _ in fields):
        raise UnprocessableEntity(f"{name} must be one number, not nested")
    if not given:
        raise UnprocessableEntity(f"{name} is missing")
    if len(given) > 1:
        raise UnprocessableEntity(f"{name} is given more than once")
    if not isinstance(given[0], str):
        raise UnprocessableEntity(f"{name} must be a number")
    return given[0]


@lru_cache(maxsize=16)  # few distinct values in practice
def _media_type(content_type: str) -> tuple[str, str]:
    """What a Content-Type names: the media type, and the charset."""
    mimetype, parameters = parse_options_header(content_type)
    return mimetype.lower(), parameters.get("charset", "utf-8").lower()


def _whole_body(environ: WSGIEnvironment, charset: str) -> bytes:
    """The complete body. Half of "distance=539.837" is a distance too.

    When a client breaks off, granian passes on an empty body. The Content-Length tells that from a
    client that sent nothing. It would also give away half a body, should a server ever pass one on.
    A chunked body has no length, and the server does not say whether it was complete, so it is
    refused.
    """
    if "HTTP_TRANSFER_ENCODING" in environ:
        raise LengthRequired("send the body with its Content-Length")
    length = int(environ.get("CONTENT_LENGTH") or 0)  # the server lets only numbers through
    if length > BODY_LIMIT:
        raise RequestEntityTooLarge(f"the body may have at most {BODY_LIMIT} bytes")
    if environ.get("HTTP_CONTENT_ENCODING"):
        raise UnsupportedMediaType("send the body without a Content-Encoding")
    if charset not in CHARSETS:
        raise UnsupportedMediaType("send the body in UTF-8")
    body = read_body(environ, length)
    if len(body) < length:
        raise BadRequest("the body is shorter than its Content-Length")
    return body


def _number(text: str) -> Decimal:
    """The exact number; infinity, which is no distance, for an exponent beyond a Decimal's."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("Infinity")


def _json_fields(body: bytes) -> list[tuple[str, Any]]:
    """The members of a JSON object as pairs; numbers as exact text, anything else as None."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        fields = json.loads(
            body.decode(),
            parse_int=_number,
            parse_float=_number,
            parse_constant=refuse,
            object_pairs_hook=tuple,
        )
    except (ValueError, RecursionError):
        raise BadRequest("the body is not valid JSON") from None
    if not isinstance(fields, tuple):
        raise UnprocessableEntity("the body must be a JSON object")
    return [(name, str(value) if isinstance(value, Decimal) else None) for name, value in fields]


def idempotency_key(environ: WSGIEnvironment) -> str | None:
    """The Idempotency-Key header, if any. Raises BadRequest when it is malformed."""
    key = environ.get("HTTP_IDEMPOTENCY_KEY")
    if key is not None and not _KEY.fullmatch(key):
        raise BadRequest(
            f"Idempotency-Key must be one key of 1 to {KEY_LENGTH} visible ASCII characters,"
            " without a comma"
        )
    return key


def trace(environ: WSGIEnvironment) -> tracing.Trace | None:
    """The trace that the request belongs to. A malformed header is ignored, as the W3C has it."""
    return tracing.parse(environ.get("HTTP_TRACEPARENT"), environ.get("HTTP_TRACESTATE"))
