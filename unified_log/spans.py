"""Spans of the work on batches, for an application that traces: it registers who makes them.

A span is a context manager around the work. Until somebody has registered, it does nothing.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from unified_log.tracing import Trace

Span = AbstractContextManager[Any]
# The stream, how many records, and the traces of those that belong to one.
Sent = Callable[[str, int, Iterable[Trace]], Span]
# The same, with the name of the reader after that of the stream.
Taken = Callable[[str, str, int, Iterable[Trace]], Span]

NOTHING: Span = nullcontext()

_sent: Sent | None = None
_taken: Taken | None = None


def register(sent: Sent, taken: Taken) -> None:
    """From now on, have these make the span of each batch, in this process."""
    global _sent, _taken
    _sent, _taken = sent, taken


def batch_sent(stream: str, records: int, traces: Iterable[Trace]) -> Span:
    """A batch that goes into the log."""
    return _sent(stream, records, traces) if _sent else NOTHING


def batch_taken(stream: str, reader: str, records: int, traces: Iterable[Trace]) -> Span:
    """A batch of the log that a reader processes."""
    return _taken(stream, reader, records, traces) if _taken else NOTHING
