"""Entries of the log, written by hand."""

from typing import Any

RIDE = "ride.create"


def fields(
    position: int | str, data: str | bytes, prev: int | str, term: str | bytes, type_: str = RIDE
) -> list[bytes]:
    """What an entry holds, in the order in which the streamer writes it."""
    named = {"id": str(position), "type": type_, "data": data, "prev": str(prev), "term": term}
    words = [word for pair in named.items() for word in pair]
    return [word if isinstance(word, bytes) else word.encode() for word in words]


def named(
    position: int | str, data: str | bytes, prev: int | str, term: str | bytes, type_: str = RIDE
) -> dict[Any, Any]:
    """The same as redis-py's `xadd` takes it."""
    words = fields(position, data, prev, term, type_)
    return dict(zip(words[::2], words[1::2], strict=True))
