"""A recording: what the services of a run did, in the order of their commits, without their help.

A restore or a fail-over begins another *life* of the database: the recording goes on with the rows
that exist then. Times say when something was read, on the monotonic clock of chaos.
"""

import gzip
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lab.chaos.observer import Told
from lab.chaos.trace.pgoutput import Change, Row


class Life(msgspec.Struct, frozen=True, tag="life"):
    at: float
    tables: dict[str, list[Row]]  # as they were when its slot was made


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    at: float
    changes: list[Change]


class Struck(msgspec.Struct, frozen=True, tag="struck"):
    """A fault that was injected and undone; recorded if it may have taken entries from the log."""

    kind: str
    began: float
    ended: float


Recorded = Life | Commit | Told | Struck


class Recording:
    """A compressed file of JSON lines that steps are written to, by any thread."""

    def __init__(self, file: Path) -> None:
        self._file = gzip.open(file, "wb", compresslevel=1)  # noqa: SIM115 (closed by `close`)
        self._encode = msgspec.json.Encoder().encode
        self._guard = threading.Lock()

    def write(self, step: Recorded) -> None:
        line = self._encode(step) + b"\n"
        with self._guard:
            self._file.write(line)

    def close(self) -> None:
        with self._guard:
            self._file.close()


def read(file: Path) -> Iterator[Recorded]:
    """The steps as they were written. Raises EOFError where it was never closed."""
    decode = msgspec.json.Decoder(Recorded).decode
    with gzip.open(file) as lines:
        for line in lines:
            yield decode(line)
