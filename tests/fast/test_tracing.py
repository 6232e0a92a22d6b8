"""A trace's context is taken as the W3C's Trace Context has it, or ignored."""

import pytest

from tests.support import entries
from unified_log.log import decode
from unified_log.tracing import LONGEST_STATE, MOST_NAMED, Trace, fields, parse

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
LONG = "a=" + "x" * 250
OF_512 = f"{LONG},{LONG},b=1234".ljust(LONGEST_STATE, "5")


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (PARENT, PARENT),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"00-{TRACE}-{SPAN}-ff", f"00-{TRACE}-{SPAN}-03"),  # what we don't know is not sent on
        # A later version may say more; we know these fields of it.
        (f"cc-{TRACE}-{SPAN}-01", PARENT),
        (f"cc-{TRACE}-{SPAN}-01-what-is-new", PARENT),
        (f"cc-{TRACE}-{SPAN}-01.new", None),
        (f"{PARENT}-new", None),
        (f"{PARENT}-", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (PARENT.upper(), None),
        (f"{PARENT}, {PARENT}", None),  # it was sent twice
        (f"{PARENT}\n", None),
        (f" {PARENT}", None),
        (f"00-{TRACE[1:]}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}-1", None),
        (f"00-{TRACE[1:]}٣-{SPAN}-01", None),  # a digit, of another alphabet
        ("", None),
        (None, None),
    ],
)
def test_a_traceparent_is_taken_or_ignored(given: str | None, taken: str | None) -> None:
    trace = parse(given)
    assert (trace and trace.parent) == taken
    if trace:
        assert trace.id == TRACE


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [
        ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", True),
        ("t@vendor=1 , ,b=2", True),
        (OF_512, True),
        (f"{OF_512}6", False),
        (",".join("a=1" for _ in range(32)), True),
        (",".join("a=1" for _ in range(33)), False),
        ("a=1\r\nx-forged: 1", False),
        ("a", False),
        ("A=1", False),
        ("a=ü", False),
        ("a=1=2", False),
        ("", False),
    ],
)
def test_a_tracestate_that_is_malformed_or_too_long_is_dropped_alone(
    given: str, is_taken: bool
) -> None:
    assert parse(PARENT, given) == Trace(PARENT, given if is_taken else None)
    assert parse("none", given) is None


def test_whoever_is_called_next_gets_a_span_of_the_same_trace() -> None:
    child = Trace(PARENT, "a=1").child()
    assert child.id == TRACE
    assert child.parent != PARENT
    assert parse(child.parent, child.state) == child
    assert child.headers() == {"traceparent": child.parent, "tracestate": "a=1"}
    assert Trace(PARENT).headers() == {"traceparent": PARENT}


@pytest.mark.parametrize(
    ("extra", "trace"),
    [
        ((PARENT, "a=1"), Trace(PARENT, "a=1")),
        ((PARENT,), Trace(PARENT)),
        ((PARENT, "a=1\r\nx-forged: 1"), Trace(PARENT)),
        ((f"{PARENT}\r\nx-forged: 1",), None),
        ((b"\xff",), None),
    ],
)
def test_an_entry_of_the_log_carries_a_trace_or_none(
    extra: tuple[str | bytes, ...], trace: Trace | None
) -> None:
    """Whoever may write to the log can't have a receipt refused for its headers."""
    entry = entries.fields(521, "{}", 520, "5f3a")
    for name, value in zip((b"traceparent", b"tracestate"), extra, strict=False):
        entry += [name, value.encode() if isinstance(value, str) else value]
    assert decode(entry).trace == trace


def test_a_log_line_names_its_trace_or_the_first_of_many() -> None:
    traces = [Trace(f"00-{number:032x}-{SPAN}-01") for number in range(1, MOST_NAMED + 5)]
    assert fields([]) == {}
    assert fields(traces[:1] * 2) == {"trace_id": f"{1:032x}"}
    assert fields(traces) == {"trace_ids": [trace.id for trace in traces[:MOST_NAMED]]}
