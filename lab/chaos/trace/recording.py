"""A recording: what a run's processes did, in the order in which they committed it.

Nothing in them takes part. Postgres tells of each transaction (`lab.chaos.trace.recorder`), an
onlooker of the log's entries, and the nemesis when the log may have lost some.

A restore or a fail-over begins another *life* of the database: the recording goes on with the rows
that are there then.

Times are those of the onlookers' monotonic clock, when they had read what they tell of: the clocks
of the servers may be wrong.

A file of JSON lines, compressed. No more than LIMIT bytes are written (before compression): then
the recording says that it is cut short.
"""

import gzip
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from lab.chaos.observer import Told
from lab.chaos.trace.pgoutput import Row, Transaction
from rocket_rides.log import Record

LIMIT = 2 << 30  # bytes


class Limits(msgspec.Struct, frozen=True, tag="limits"):
    """The first line."""

    longest_log: int  # entries


class Life(msgspec.Struct, frozen=True, tag="life"):
    """The database as it was when its slot was made."""

    number: int
    at: float
    tables: dict[str, list[Row]]


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    """A transaction of a life."""

    life: int
    at: float
    did: Transaction


class Appended(msgspec.Struct, frozen=True, tag="entry"):
    """An entry of the log that is well-formed."""

    redis_id: str
    at: float
    record: Record


class Loss(msgspec.Struct, frozen=True, tag="loss"):
    """In this time a fault may have taken entries from the log before anyone read them."""

    fault: str
    began: float
    ended: float


class Rewind(msgspec.Struct, frozen=True, tag="rewind"):
    """A restore or a fail-over, after which another life may have begun."""

    fault: str
    at: float


class End(msgspec.Struct, frozen=True, tag="end"):
    """The last line: without it, or `cut_short`, the recording does not tell all."""

    cut_short: bool


Step = Limits | Life | Commit | Appended | Loss | Rewind | End


class Recording:
    """A file that steps are written to, by any thread."""

    def __init__(self, file: Path, longest_log: int, limit: int = LIMIT) -> None:
        self.cut_short = False
        self._file = gzip.open(file, "wb", compresslevel=1)  # noqa: SIM115 (closed by `close`)
        self._left = limit
        self._encode = msgspec.json.Encoder().encode
        self._guard = threading.Lock()
        self.write(Limits(longest_log))

    def write(self, step: Step) -> None:
        line = self._encode(step) + b"\n"
        with self._guard:
            self._left -= len(line)
            self.cut_short = self.cut_short or self._left < 0
            if not self.cut_short:
                self._file.write(line)

    def append(self, redis_id: str, told: Told) -> None:
        self.write(Appended(redis_id, told.at, told.record))

    def close(self, *, cut_short: bool = False) -> None:
        with self._guard:
            self._file.write(self._encode(End(self.cut_short or cut_short)) + b"\n")
            self._file.close()


def read(file: Path) -> Iterator[Step]:
    """The steps of a recording, as they were written. Raises OSError or msgspec.MsgspecError."""
    decode = msgspec.json.Decoder(Step).decode
    with gzip.open(file) as lines, suppress(EOFError):  # of a run that was killed
        for line in lines:
            yield decode(line)
