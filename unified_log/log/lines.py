"""An entry of the log as a line: for a person, or as JSON for a program.

Whatever bytes an entry has, its line is one line of ASCII.
"""

import re
from datetime import timedelta
from typing import Any

import msgspec

from unified_log.log.entries import (
    CUT_LONGER,
    Entry,
    Invalid,
    Record,
    as_numbers,
    cut,
    decode,
)
from unified_log.log.places import EPOCH

IN_JSON = """
The JSON of an entry has

    redis_id, appended_at        of every entry; null for a time beyond the year 9999
    id, type, prev, term, data   of a record; what is no JSON in `data` is a string of it, so that
                                 x and "x" look the same
    traceparent, tracestate      where it has them
    malformed, fields            of what is no record: why, and the beginnings of names and values

In strings, a byte that is not UTF-8 is written as \\xff, and what is too long ends with its size.
"""

_NOT_ASCII = re.compile(r"[^ -~]")


def in_words(entry: Entry) -> str:
    """An entry as a line for a person."""
    when = f"{appended_at(entry.redis_id) or 'after the year 9999':24}  {entry.redis_id:>20}"
    try:
        record = decode(entry.fields)
    except Invalid as reason:
        return f"{when}  not a record: {reason}"
    # Whatever bytes these are, they stay on one line.
    type_, term, data = (
        ascii(_beginning(field).decode(errors="replace"))[1:-1]
        for field in (record.type, record.term, record.data)
    )
    return f"{when}  {record.id}  {type_}  after {record.prev}  term {term or '-'}  {data}"


def as_json(entry: Entry) -> str:
    """An entry as a JSON object."""
    members: dict[str, Any] = {
        "redis_id": entry.redis_id,
        "appended_at": appended_at(entry.redis_id),
    }
    try:
        members |= _record(decode(entry.fields))
    except Invalid as reason:
        members |= {"malformed": str(reason), "fields": [*map(_text, entry.beginning)]}
    return json_line(members)


def json_line(members: dict[str, Any]) -> str:
    """An object of JSON, in ASCII: beyond that, only what is in strings has to be escaped."""
    return _NOT_ASCII.sub(_escaped, msgspec.json.encode(members).decode())


def appended_at(redis_id: str) -> str | None:
    """By Redis' clock, in RFC 3339, in UTC; None for a time beyond the year 9999."""
    milliseconds, _ = as_numbers(redis_id)
    try:
        moment = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _record(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "type": _text(record.type),
        "prev": record.prev,
        "term": _text(record.term),
        "data": _data(record.data),
        **(record.trace.headers() if record.trace else {}),
    }


def _data(data: bytes) -> msgspec.Raw | str:
    """As it is, in one line, with all digits of its numbers; as text where it is no JSON."""
    try:
        data.decode()
        return msgspec.Raw(msgspec.json.format(_beginning(data), indent=-1))
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return _text(data)


def _text(field: bytes) -> str:
    return _beginning(field).decode(errors="backslashreplace")


def _beginning(field: bytes) -> bytes:
    return cut(field, len(field), CUT_LONGER)


def _escaped(character: re.Match[str]) -> str:
    return re.sub("(....)", r"\\u\1", character[0].encode("utf-16-be").hex())
