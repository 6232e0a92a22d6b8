"""The names in Redis: the fields of an entry, and the keys beside the stream."""

# The fields of an entry, as Redis answers them.
ID, TYPE, DATA, PREV, TERM = b"id", b"type", b"data", b"prev", b"term"
TRACEPARENT, TRACESTATE = b"traceparent", b"tracestate"


def rollup_key(stream: str, generation: str) -> str:
    """The key at which a generation of the rollup has its set of dirty minutes."""
    return f"{stream}/rollup/{generation}"
