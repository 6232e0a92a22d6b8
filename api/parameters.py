"""Parses and checks what a client sends: distance or stars, idempotency key, moments."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import msgspec
from flask import request
from werkzeug.exceptions import BadRequest, UnprocessableEntity, UnsupportedMediaType

from api.bodies import whole_body
from rocket_rides import distance

KEY_LENGTH = 255  # characters, at most: the schema says so too
URLENCODED = "application/x-www-form-urlencoded"

# No comma: it joins the values of a header that was sent twice.
_KEY = re.compile(rf"[\x21-\x2b\x2d-\x7e]{{1,{KEY_LENGTH}}}")
_STARS = re.compile(r"[1-5](\.0*)?")  # 4.0 is an integer in JSON


def ride_distance() -> Decimal:
    """The `distance` of a form or a JSON object, in metres, to the millimetre.

    Raises one of werkzeug's HTTPExceptions, with a message for the client.
    """
    try:
        return distance.parse(_the_only("distance"))
    except ValueError as refusal:
        raise UnprocessableEntity(str(refusal)) from None


def stars() -> int:
    """The `stars` of a form or a JSON object, from 1 to 5. Raises as `ride_distance` does."""
    given = _the_only("stars")
    if not _STARS.fullmatch(given):
        raise UnprocessableEntity("stars must be 1, 2, 3, 4 or 5")
    return int(given[0])


def _the_only(name: str) -> str:
    """The value that a form or a JSON object gives a name: a text, or a number's exact digits."""
    body = whole_body()
    fields: list[tuple[str, Any]] = []
    if request.mimetype == URLENCODED:
        fields = [*request.form.items(multi=True)]
    elif request.mimetype == "application/json":
        fields = _json_fields(body)
    elif request.mimetype or body:
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


def _number(text: str) -> Decimal:
    """The exact number; infinity, which is no distance, for an exponent beyond a Decimal's."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("Infinity")


def _json_fields(body: str) -> list[tuple[str, Any]]:
    """The members of a JSON object as pairs; numbers as exact text, anything else as None."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        fields = json.loads(
            body,
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


def idempotency_key() -> str | None:
    """The Idempotency-Key header, if any. Raises BadRequest when it is malformed."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise BadRequest(
            f"Idempotency-Key must be one key of 1 to {KEY_LENGTH} visible ASCII characters,"
            " without a comma"
        )
    return key


def in_query(name: str) -> str | None:
    """The query's parameter of this name, if any. Raises UnprocessableEntity when it is twice."""
    given = request.args.getlist(name)
    if len(given) > 1:
        raise UnprocessableEntity(f"{name} is given more than once")
    return given[0] if given else None


def moment(name: str) -> datetime:
    """The query's parameter of this name, a time as in RFC 3339, in UTC.

    Raises UnprocessableEntity, with a message for the client.
    """
    given = in_query(name)
    if given is None:
        raise UnprocessableEntity(f"{name} is missing")
    try:
        return moment_of(given)
    except ValueError:
        hint = " (in a URL, + is written %2B)" if " " in given else ""
        raise UnprocessableEntity(
            f"{name} must be a time as in RFC 3339, such as 2026-03-28T20:00:00Z{hint}"
        ) from None


def moment_of(text: str) -> datetime:
    """An RFC 3339 time, in UTC, rounded to the microsecond. Raises ValueError."""
    try:
        moment: datetime = msgspec.convert(text, Annotated[datetime, msgspec.Meta(tz=True)])
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("before the year 1, or after the year 9999") from None
