"""Two onlookers: one reads the log as it is written, one watches the consumers move on.

The first reads from its own place, past the proxies, within milliseconds of each entry, and so
before anything is trimmed. What was lost before anyone could read it (cut from the end of the
file, flushed) it has not seen either: it vouches for the order of what it saw, not for having
seen all.
"""

import threading
import time
from bisect import bisect_left
from contextlib import closing

import psycopg
import redis

from rocket_rides import database
from rocket_rides.log import START, Invalid, Log, Record, decode
from rocket_rides.process import Unavailable

BLOCK = 0.2  # seconds
PAUSE = 0.02
SLOWEST = "SELECT min(last_ride_id) FROM checkpoints HAVING count(*) = %s"


class LogReader(threading.Thread):
    """Every entry of the log, in the order in which they were appended."""

    def __init__(self, url: str, stream: str) -> None:
        super().__init__(name="log reader", daemon=True)
        self.records: list[Record] = []
        self.invalid: list[str] = []
        self._url = url
        self._stream = stream
        self._after = START
        self._ending = threading.Event()

    def run(self) -> None:
        # A wiped or cut log goes on with greater ids, which are made of the time: one place is
        # enough for all of its lives.
        while not self._ending.is_set():
            try:
                with Log(self._url, self._stream) as log:
                    while not self._ending.is_set():
                        self._read(log, wait=BLOCK)
            except redis.RedisError:
                self._ending.wait(PAUSE)

    def _read(self, log: Log, wait: float) -> None:
        for entry in log.read(self._after, 1000, wait=wait):
            self._after = entry.redis_id
            try:
                self.records.append(decode(entry.fields))
            except Invalid as reason:
                self.invalid.append(f"{entry.redis_id}: {reason}")

    def end(self) -> None:
        self._ending.set()
        if self.ident:
            self.join()


class Watch(threading.Thread):
    """When each ride had been counted by every one of `consumers` consumers."""

    def __init__(self, url: str, consumers: int) -> None:
        super().__init__(name="watch", daemon=True)
        self._url = url
        self._consumers = consumers
        self._times: list[float] = []  # monotonic
        self._counted: list[int] = []  # the ride up to which all had counted, at that time
        self._ending = threading.Event()

    def run(self) -> None:
        while not self._ending.is_set():
            try:
                with closing(database.connect(self._url, "chaos")) as connection:
                    while not self._ending.wait(PAUSE):
                        self._look(connection)
            except (psycopg.Error, Unavailable):
                self._ending.wait(PAUSE)

    def _look(self, connection: psycopg.Connection) -> None:
        row = connection.execute(SLOWEST, [self._consumers]).fetchone()
        if row and (not self._counted or row[0] > self._counted[-1]):
            self._times.append(time.monotonic())
            self._counted.append(row[0])

    def counted_at(self, ride: int) -> float | None:
        """The moment by which every consumer had counted `ride`; None if they never have."""
        index = bisect_left(self._counted, ride)
        return self._times[index] if index < len(self._times) else None

    @property
    def counted(self) -> int:
        return self._counted[-1] if self._counted else 0

    def end(self) -> None:
        self._ending.set()
        if self.ident:
            self.join()
