"""Errors as problem details (RFC 9457): one format, for programs and for people.

A problem's type is "about:blank" where the status says it all. The other types are those on which
a client's next step depends; each is a link to where `openapi.json` describes that step.
"""

from typing import NamedTuple

from flask import Flask, Response, jsonify, request
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import HTTPException, InternalServerError, MethodNotAllowed, NotFound
from werkzeug.http import HTTP_STATUS_CODES

from api import booking, feed
from api.database import NoConnection, cause
from api.writing import TryLater
from rocket_rides.revisions import refusal

# RFC 9110 renamed these two.
PHRASES = HTTP_STATUS_CODES | {413: "Content Too Large", 422: "Unprocessable Content"}
RETRY_AFTER = "1"  # seconds


class Kind(NamedTuple):
    """What all problems of one type have in common."""

    type: str
    title: str


KEY_REUSED = Kind("/openapi.json#key-reused", "The Idempotency-Key was already used")
OTHER_HISTORY = Kind("/openapi.json#other-history", "The log has another history")


def answer_errors(app: Flask) -> None:
    """Make `app` answer every exception with a problem."""
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(booking.KeyReused, _key_reused)
    app.register_error_handler(feed.OtherHistory, _other_history)
    app.register_error_handler(TryLater, _try_later)
    app.register_error_handler(NoConnection, _no_connection)
    app.register_error_handler(DBAPIError, _unavailable)


def problem(status: int, detail: str, kind: Kind | None = None) -> Response:
    """An answer that says what went wrong: `detail` is a sentence for a person."""
    kind = kind or Kind("about:blank", PHRASES[status])
    response = jsonify(type=kind.type, title=kind.title, status=status, detail=detail)
    response.status_code = status
    response.mimetype = "application/problem+json"
    response.headers["Cache-Control"] = "no-store"  # caches may keep a 404 or a 410
    if status == 503:
        response.headers["Retry-After"] = RETRY_AFTER
    return response


def _refused(error: HTTPException) -> Response:
    response = problem(error.code or 500, _sentence(error))
    for name, value in error.get_headers():  # such as Allow
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    return response


def _sentence(error: HTTPException) -> str:
    """The application's own wording, even when it was Flask that refused."""
    if isinstance(error, InternalServerError):
        return "the application failed; its log says why"
    if isinstance(error, NotFound) and error is request.routing_exception:
        return "there is no such path; try /rides, /consumers, /hours, /days, /log or /openapi.json"
    if isinstance(error, MethodNotAllowed):
        return f"use {' or '.join(sorted(error.valid_methods or []))} here"
    return error.description or PHRASES[error.code or 500]


def _key_reused(_: booking.KeyReused) -> Response:
    detail = "this Idempotency-Key was already used for a ride of another distance"
    return problem(422, detail, KEY_REUSED)


def _other_history(reason: feed.OtherHistory) -> Response:
    return problem(410, str(reason), OTHER_HISTORY)


def _try_later(reason: TryLater) -> Response:
    what = reason.what
    if reason.maybe_taken:
        kind = Kind(f"/openapi.json#{what}-maybe-taken", f"The {what} may have been taken")
    else:
        kind = Kind(f"/openapi.json#{what}-not-taken", f"The {what} was not taken")
    return problem(503, str(reason), kind)


# For routes that only read. Those that write also say whether they wrote (`api.writing`).


def _no_connection(reason: NoConnection) -> Response:
    return problem(503, str(reason))


def _unavailable(error: DBAPIError) -> Response:
    return problem(503, f"the database is not available: {refusal(cause(error))}")
