"""A trace's context travels with a record: through the outbox and the log, to its readers.

It is the W3C's Trace Context (https://www.w3.org/TR/trace-context/): `traceparent` names a trace
and the span that a record comes from, `tracestate` is what its vendors add. Nothing depends on
them. A record that was healed, swept or staged by hand has none.
"""

import re
import secrets
from collections.abc import Iterable
from typing import Any, NamedTuple

# A later version may add fields after these four; version ff is invalid.
_TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_VALUE = r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_MEMBER = rf"[ \t]*(?:[a-z0-9][a-z0-9_\-*/@]{{0,255}}={_VALUE}[ \t]*)?"
_TRACESTATE = re.compile(rf"{_MEMBER}(?:,{_MEMBER}){{0,31}}")
LONGEST_STATE = 512  # bytes
KNOWN_FLAGS = 0x03  # sampled, and that the trace's id is random; others must be sent on as 0
MOST_NAMED = 20  # traces in one log line


class Trace(NamedTuple):
    """Where something belongs: a span of a trace. Both texts are as the headers have them."""

    parent: str
    state: str | None = None

    @property
    def id(self) -> str:
        """The trace's id: 32 hexadecimal digits."""
        return self.parent[3:35]

    def child(self) -> "Trace":
        """The context of a new span, below this one: for whoever is called next."""
        return self._replace(parent=f"{self.parent[:36]}{secrets.token_hex(8)}{self.parent[52:]}")

    def headers(self) -> dict[str, str]:
        """The headers that pass it on, as names and values."""
        state = {"tracestate": self.state} if self.state else {}
        return {"traceparent": self.parent, **state}


NO_TRACE = (None, None)  # for SQL, in place of a Trace's two texts


def parse(parent: str | None, state: str | None = None) -> Trace | None:
    """The context that two headers give. None if `parent` is missing or, by the standard, invalid.

    A `state` that is malformed, or longer than LONGEST_STATE, is dropped; `parent` is kept.
    """
    if parent is None:
        return None
    found = _TRACEPARENT.fullmatch(parent)
    if not found or (found["version"] == "00" and found["more"]):
        return None
    if state is not None and not (0 < len(state) <= LONGEST_STATE and _TRACESTATE.fullmatch(state)):
        state = None
    # Of a later version we know only these fields, so we send on our own version, and known flags.
    flags = int(found["flags"], 16) & KNOWN_FLAGS
    return Trace(f"00-{found['trace']}-{found['span']}-{flags:02x}", state)


def fields(traces: Iterable[Trace | None]) -> dict[str, Any]:
    """What a log line about records of these traces has beside its message, as `extra`."""
    ids = list(dict.fromkeys(trace.id for trace in traces if trace))
    if len(ids) == 1:
        return {"trace_id": ids[0]}
    return {"trace_ids": ids[:MOST_NAMED]} if ids else {}
