"""What Redis says of the log and of the rollup's dirty minutes.

Rights that it needs in Redis: keys `~STREAM_NAME ~STREAM_NAME/rollup/*`, commands `+xinfo|stream
+time +memory|usage +zcard`. What this user may not ask for is None, or 0 for the log's bytes.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import redis

from rocket_rides.errors import in_one_line
from rocket_rides.log import Forbidden, Log, as_numbers
from rocket_rides.log.names import rollup_key
from watch.facts import NO_ANSWER
from watch.facts import Log as LogFacts

TIMEOUT = 0.6  # seconds of a single command
RARELY = 20.0  # seconds between looks that each move an entry of 20 MB or more
SAMPLES = 5  # of a stream's nodes and groups, from which Redis estimates its size

T = TypeVar("T")


class AskingRedis:
    """Asks on one connection, which is opened anew after it was lost. Used by one thread."""

    def __init__(self, url: str, stream: str) -> None:
        self._url, self._stream = url, stream
        self._connected: Log | None = None
        self._kept: LogFacts | None = None
        self._keep_until = 0.0

    def ask(self) -> LogFacts | None:
        """Look at the log; None where this user may not. Raises redis.RedisError."""
        was_connected = self._connected
        try:
            return self._if_allowed(self._look_at_the_log)
        except redis.ConnectionError as error:
            self.close()
            if not was_connected or _hangs(error):
                raise
        # The connection may have been closed long ago.
        return self._if_allowed(self._look_at_the_log)

    def dirty_minutes(self, dirty_set: str) -> int | None:
        """How many are in the dirty set of this name; before the first lead there is no name.

        Raises redis.RedisError.
        """
        key = rollup_key(self._stream, dirty_set)
        return self._if_allowed(lambda: int(self._log.command("ZCARD", key))) if dirty_set else 0

    def close(self) -> None:
        if self._connected:
            self._connected.redis.close()
            self._connected = None

    @property
    def _log(self) -> Log:
        if not self._connected:
            self._connected = Log(self._url, self._stream, TIMEOUT)  # connects
        return self._connected

    def _if_allowed(self, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except Forbidden:
            return None

    def _look_at_the_log(self) -> LogFacts:
        log = self._log
        if self._kept and time.monotonic() < self._keep_until:
            return self._kept
        now = log.clock()
        try:
            reply = log.command("XINFO", "STREAM", log.name)
        except redis.ResponseError as error:
            if "no such key" in str(error):
                return LogFacts(0, 0, None)
            raise
        if log.was_cut:  # XINFO answers with the whole of the first and the last entry
            self._keep_until = time.monotonic() + RARELY
        facts = dict(zip(reply[::2], reply[1::2], strict=True))
        last_entry = facts[b"last-entry"]
        age = None
        if last_entry:
            age = max(0, now - as_numbers(last_entry[0].decode())[0]) / 1000
        self._kept = LogFacts(
            int(facts[b"length"]), self._bytes(), age, int(facts.get(b"entries-added", 0))
        )
        return self._kept

    def _bytes(self) -> int:
        words = ["MEMORY", "USAGE", self._log.name, "SAMPLES", SAMPLES]
        return int(self._if_allowed(lambda: self._log.command(*words)) or 0)


def _hangs(error: Exception) -> bool:
    return isinstance(error.__context__, redis.TimeoutError)


def reason(error: Exception) -> str:
    """Why Redis can't be used, in one line."""
    return NO_ANSWER if _hangs(error) else in_one_line(error).removeprefix("Redis: ").rstrip(".")
