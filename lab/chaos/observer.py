"""An onlooker: it reads the log as it is written, past the proxies, usually before it is trimmed.

It misses entries that are gone before it reads them: cut from the end of the file, flushed, trimmed
where Redis is full, gone before it joins a promoted replica, or in the other of two that take
writes. So what it saw is in the right order, but need not be everything.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec
import redis

from unified_log.errors import in_one_line
from unified_log.log import START, Entry, Invalid, Log, Record, decode, entries

MOST = 10_000  # entries at once; several batches
BLOCK = 0.2  # seconds
PAUSE = 0.02
BREATH = 0.005  # seconds between two reads: under load, each then returns many entries


class Told(msgspec.Struct, frozen=True, tag="entry"):
    """A well-formed entry of the log, and when it was read, on the monotonic clock."""

    redis_id: str
    at: float
    record: Record


class Onlooker(threading.Thread):
    """Observes until it is told to end; `error` says why it ended before."""

    error = ""

    def __init__(self, name: str, url: Callable[[], str] = str) -> None:
        super().__init__(name=name, daemon=True)
        self.ending = threading.Event()
        self._url = url  # of the server that it looks at

    def run(self) -> None:
        try:
            self.look_on()
        except Exception as error:  # a finding: without it the run proves less
            self.error = f"the {self.name} ended: {in_one_line(error)}"

    def look_on(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        self.ending.set()
        if self.ident:
            self.join()


class LogReader(Onlooker):
    """Reads the entries of the log in the order in which they were appended.

    It reports each entry once. Where the last one that it read is gone, it reads the log from the
    beginning. Ids alone do not show this: after a clock was ahead, later entries reuse them.
    """

    def __init__(self, url: Callable[[], str], stream: str, tell: Callable[[Told], None]) -> None:
        super().__init__("log reader", url)
        self._stream = stream
        self._tell = tell  # takes each well-formed entry
        self._last: Entry | None = None
        self._noted: set[tuple[str, Record]] = set()

    def look_on(self) -> None:
        while not self.ending.is_set():
            try:
                with Log(self._url(), self._stream) as log:
                    while not self.ending.is_set():
                        self._read(log, wait=BLOCK)
                        self.ending.wait(BREATH)
            except redis.RedisError:
                self.ending.wait(PAUSE)
        with suppress(redis.RedisError), Log(self._url(), self._stream) as log:
            while self._read(log, wait=0):
                pass  # what came last

    def _read(self, log: Log, wait: float) -> bool:
        """Read some entries, or find that the last one is gone; False where it did neither."""
        found = log.read(self._last.redis_id if self._last else START, MOST, wait)
        if not self._goes_on(log):
            self._last = None
            return True
        for entry in found:
            self._last = entry
            with suppress(Invalid):  # it is malformed to consumers, too
                self._note(entry.redis_id, decode(entry.fields))
        return bool(found)

    def _goes_on(self, log: Log) -> bool:
        last = self._last
        if last is None:
            return True
        there = log.command("XRANGE", log.name, last.redis_id, last.redis_id)
        return entries(there) == [last]

    def _note(self, redis_id: str, record: Record) -> None:
        if (redis_id, record) not in self._noted:
            self._noted.add((redis_id, record))
            self._tell(Told(redis_id, time.monotonic(), record))
