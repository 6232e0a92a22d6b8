"""The fields of an entry, as Redis answers them."""

ID, TYPE, DATA, PREV, TERM = b"id", b"type", b"data", b"prev", b"term"
TRACEPARENT, TRACESTATE = b"traceparent", b"tracestate"
