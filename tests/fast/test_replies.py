"""Replies too large to be kept are cut, wherever the pieces end in which they arrive."""

import sys
from types import FrameType

import pytest

from unified_log.log.replies import MOST_STRINGS, _Cutting

STRINGS = 100_000


def entry(*strings: bytes) -> bytes:
    """A stream's entry as Redis sends it."""
    packed = b"".join(b"$%d\r\n%s\r\n" % (len(each), each) for each in strings)
    return b"*2\r\n$3\r\n1-1\r\n*%d\r\n%s" % (len(strings), packed)


def in_pieces(reply: bytes, size: int) -> _Cutting:
    return _Cutting(iter([reply[at : at + size] for at in range(0, len(reply), size)]))


@pytest.mark.parametrize("size", [*range(1, 20), 65_536])
def test_the_next_reply_begins_where_a_cut_one_ends(size: int) -> None:
    strings = [b"", b"a", b"\r\n", b"$1\r\n", b"*2\r\n", b"x" * 20_000] * MOST_STRINGS
    reply = b"*3\r\n" + entry(*strings) + b"$-1\r\n" + entry(b"f", b"v")
    cutting = in_pieces(reply + b":7\r\n", size)
    [[first, kept], missing, last] = cutting.reply()
    assert (first, missing, last) == (b"1-1", None, [b"1-1", [b"f", b"v"]])
    assert kept[:5] == strings[:5]
    assert kept[MOST_STRINGS:] == [b"... (%d names and values)" % len(strings)]
    assert cutting.reply() == 7


def test_other_things_than_strings_are_passed_over_too() -> None:
    inside = b":7\r\n$-1\r\n*1\r\n$1\r\nx\r\n*-1\r\n+OK\r\n"
    reply = b"*%d\r\n%s%s:7\r\n" % (MOST_STRINGS + 5, b"$1\r\na\r\n" * MOST_STRINGS, inside)
    cutting = in_pieces(reply, 11)
    assert len(cutting.reply()) == MOST_STRINGS + 1
    assert cutting.reply() == 7


def test_the_strings_that_are_not_kept_take_no_calls() -> None:
    """There may be ten million in an entry, which would take a reader half a minute."""
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    cutting = in_pieces(entry(*[b"v"] * STRINGS), 65_536)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        cutting.reply()
    finally:
        sys.setprofile(before)
    assert calls < STRINGS / 100
