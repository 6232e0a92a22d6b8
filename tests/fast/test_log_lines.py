"""The log's lines, for a person and as JSON: one line of ASCII each, whatever an entry holds."""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.support.entries import fields
from unified_log.log import CUT_LONGER, KEPT, Entry
from unified_log.log.lines import as_json, in_words

ID = "1774728000007-5"
AT = {"redis_id": ID, "appended_at": "2026-03-28T20:00:00.007Z"}
TERM = "0123456789abcdef"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def read(words: list[bytes], redis_id: str = ID) -> dict[str, Any]:
    """An entry's line of JSON, read again."""
    line = as_json(Entry(redis_id, words))
    assert line.isascii()
    assert line.isprintable()
    read: dict[str, Any] = json.loads(line, parse_float=Decimal)
    return read


def test_a_record_is_an_object_whose_data_keeps_all_its_digits() -> None:
    data = '{"id": 521, "distance": 999999999.9990, "name":\n "\u00e9\u202e\U0001f6b4\x7f"}'
    assert read(fields(521, data, 520, TERM)) == AT | {
        "id": 521,
        "type": "ride.create",
        "prev": 520,
        "term": TERM,
        "data": {
            "id": 521,
            "distance": Decimal("999999999.9990"),
            "name": "\u00e9\u202e\U0001f6b4\x7f",
        },
    }
    assert "999999999.9990" in as_json(Entry(ID, fields(521, data, 520, TERM)))


def test_a_trace_is_told_where_there_is_one() -> None:
    words = [*fields(521, "{}", 520, TERM), b"traceparent", TRACE.encode(), b"tracestate", b"a=1"]
    told = read(words)
    assert (told["traceparent"], told["tracestate"]) == (TRACE, "a=1")


def test_data_that_is_nested_deep_is_told_whole() -> None:
    """As text, where this Python reads no JSON that is nested so deep."""
    deep = "[" * 4000 + "]" * 4000
    assert deep in as_json(Entry(ID, fields(521, deep.encode(), 520, b"")))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff{}", "\\xff{}"),
        (b'"\xed\xa0\x80"', '"\\xed\\xa0\\x80"'),
        (b"{'id': 5}\r\n", "{'id': 5}\r\n"),
        (b"NaN", "NaN"),
        (b"", ""),
        (b"[" * 8000 + b"]" * 8000, None),
        (b'"' + b"x" * CUT_LONGER + b'"', None),
    ],
)
def test_data_that_is_no_json_is_text(data: bytes, text: str | None) -> None:
    told = read(fields(521, data, 520, b"\xfe\x1b"))
    assert told["term"] == "\\xfe\x1b"
    if text is None:
        assert told["data"].endswith(f"... ({len(data)} bytes)")
        assert len(told["data"]) <= KEPT
    else:
        assert told["data"] == text


def test_what_is_no_record_says_why_and_how_it_begins() -> None:
    assert read([b"x", b"\xff\n\x1b[31m"]) == AT | {
        "malformed": "no field 'id'",
        "fields": ["x", "\\xff\n\x1b[31m"],
    }
    told = read([b"x", b"y" * 100_000] * 1000, f"{2**64 - 1}-0")
    assert told["appended_at"] is None
    assert told["fields"][1].endswith("... (100000 bytes)")
    assert told["fields"][-1] == "... (2000 names and values)"
    assert len(json.dumps(told)) < 10_000


@pytest.mark.parametrize("words", [[b"x", b"\xff\n"], fields(5, "\u202e\n", 4, b"\r\xff", "\x1b")])
def test_a_line_for_a_person_is_one_line(words: list[bytes]) -> None:
    line = in_words(Entry(ID, words))
    assert line.isascii()
    assert line.isprintable()
