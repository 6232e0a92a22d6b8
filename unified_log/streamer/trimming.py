"""Trimming: the log drops what every reader has passed, and never outgrows its caps.

A reader, in this fleet or outside it, is

* a row in `checkpoints`: a consumer of this project, or a program in any other language that keeps
  its own row up to date; or
* a consumer group of the stream, whoever made it: it holds back what none of its members has been
  given, and what is pending in it.

The log keeps what any of them has not read, up to its caps.
"""

from typing import NamedTuple

import psycopg

from unified_log import groups
from unified_log.log import START, Log, as_numbers

CHECKPOINTS = "SELECT last_redis_id FROM current_checkpoints"


class Caps(NamedTuple):
    """What the log keeps at most, even for a reader that has not read it.

    They protect Redis' memory from a reader that never comes back; one that does come back finds a
    gap and heals it from the tables.
    """

    length: int  # entries
    age: float  # seconds, by Redis' clock


class Trimmer:
    """Trims `log`, for one session. Methods raise psycopg.Error and redis.RedisError."""

    def __init__(self, connection: psycopg.Connection, log: Log, caps: Caps) -> None:
        self._connection = connection
        self._log = log
        self._caps = caps

    def trim(self) -> int:
        """Drop entries that every reader has passed, and those beyond a cap; returns how many."""
        return (
            self._log.trim_before(self.slowest())
            + self._log.trim_before(self._oldest_to_keep(), exactly=True)
            + self._log.trim_to(self._caps.length)
        )

    def make_room(self) -> int:
        """Redis has no memory left: drop what every reader has passed, else half of the log."""
        past = self._log.trim_before(self.slowest(), exactly=True)
        return past or self._log.trim_to(self._log.length() // 2, exactly=True)

    def slowest(self) -> str:
        """The id before which no reader needs anything; the log's start while there is no reader.

        A group needs its lowest pending entry, else what follows the last delivered one.
        """
        needed = [redis_id for (redis_id,) in self._connection.execute(CHECKPOINTS)]
        needed += [
            group.first_pending or group.last_delivered for group in groups.positions(self._log)
        ]
        # In as few digits as can be: Redis takes no id of 128 characters.
        return "{}-{}".format(*min(map(as_numbers, needed), default=as_numbers(START)))

    def _oldest_to_keep(self) -> str:
        """By Redis' clock. If that was set back, new ids go on from the existing ones."""
        return f"{max(0, int(self._log.clock() - self._caps.age * 1000))}-0"
