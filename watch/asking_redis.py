"""What Redis says of the log and of the rollup's dirty minutes.

Rights that it needs in Redis: keys `~STREAM_NAME ~STREAM_NAME/rollup/*`, commands `+xinfo|stream
+xlen +time +memory|usage +zcard`. What this user may not ask for is None, or 0 for the log's bytes.

XINFO STREAM answers with the whole of the first and the last entry. Where somebody has appended a
huge one, Redis is busy with that answer for a second or longer: so it is asked for rarely, and
meanwhile the log's length is known, and what else was known before.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import redis

from rocket_rides.rollup import ick_keys, rollup_key
from unified_log.errors import in_one_line
from unified_log.log import Forbidden, Log, as_numbers
from watch.facts import NO_ANSWER
from watch.facts import Log as LogFacts

TIMEOUT = 0.6  # seconds of a single command
RARELY = 500  # times what the XINFO STREAM took that moved an entry of 20 MB or more
SAMPLES = 5  # of a stream's nodes and groups, from which Redis estimates its size

T = TypeVar("T")


class AskingRedis:
    """Asks on one connection, which is opened anew after it was lost. Used by one thread."""

    def __init__(self, url: str, stream: str) -> None:
        self._url, self._stream = url, stream
        self._connected: Log | None = None
        self._kept: LogFacts | None = None
        self._newest: int | None = None  # entry of those, in milliseconds of Redis' clock
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

    def dirty_minutes(self, generation: str) -> int | None:
        """How many marks the rollup's Ick has; before the first lead there is no generation.

        Raises redis.RedisError.
        """
        if not generation:
            return 0
        _, *sets = ick_keys(rollup_key(self._stream, generation))
        return self._if_allowed(lambda: sum(int(self._log.command("ZCARD", key)) for key in sets))

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

    def _look_at_the_log(self) -> LogFacts | None:
        log = self._log
        log.require_primary()
        now = log.clock()  # first: a server that is away must not seem to have a huge entry
        began = time.monotonic()
        is_resting = began < self._keep_until
        length = self._length() if is_resting or not self._kept else None
        if is_resting:
            return self._as_kept(length, now)
        try:
            reply = log.command("XINFO", "STREAM", log.name)
        except redis.ResponseError as error:
            if "no such key" in str(error):
                return LogFacts(0, 0, None)
            raise
        except redis.ConnectionError as error:
            if not _hangs(error):
                raise
            self.close()
            self._rest(began)
            return self._as_kept(length, now)
        if log.was_cut:
            self._rest(began)
        facts = dict(zip(reply[::2], reply[1::2], strict=True))
        last_entry = facts[b"last-entry"]
        self._newest = as_numbers(last_entry[0].decode())[0] if last_entry else None
        length, added = int(facts[b"length"]), int(facts.get(b"entries-added", 0))
        self._kept = LogFacts(length, self._bytes(), None, added)
        return self._as_kept(length, now)

    def _rest(self, began: float) -> None:
        now = time.monotonic()
        self._keep_until = now + RARELY * (now - began)

    def _as_kept(self, length: int | None, now: int) -> LogFacts | None:
        """What was known last, with the length as it is, and the age if that is known."""
        if length is not None and (self._kept is None or self._kept.length != length):
            self._newest = None
            self._kept = replace(self._kept or LogFacts(0, 0, None), length=length)
        age = None if self._newest is None else max(0, now - self._newest) / 1000
        return self._kept and replace(self._kept, last_entry_seconds=age)

    def _length(self) -> int | None:
        return self._if_allowed(self._log.length)

    def _bytes(self) -> int:
        words = ["MEMORY", "USAGE", self._log.name, "SAMPLES", SAMPLES]
        return int(self._if_allowed(lambda: self._log.command(*words)) or 0)


def _hangs(error: Exception) -> bool:
    return isinstance(error.__context__, redis.TimeoutError)


def reason(error: Exception) -> str:
    """Why Redis can't be used, in one line."""
    return NO_ANSWER if _hangs(error) else in_one_line(error).removeprefix("Redis: ").rstrip(".")
