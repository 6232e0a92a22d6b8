"""The dirty minutes of one lead, each with the lowest ride that is not rolled up yet.

They are in a sorted set in Redis, the lead's *dirty set*. A minute that is marked again keeps its
lowest ride: many marks fold into one, and the minute keeps its turn. (The gem Redis::Ick does the
same.) One thread marks and computes in turns, so that no minute is marked between its computation
and its removal.

Only the lead uses its dirty set, and it counts how many minutes the set must hold. So any loss is
noticed. To look for the set would not be enough: Redis has no empty sets, and one that was lost
would look as if nothing was dirty.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from rocket_rides.errors import Unavailable
from rocket_rides.log import Log
from rocket_rides.log.names import rollup_key

AT_ONCE = 1000  # minutes; Redis does nothing else meanwhile


class Mark(NamedTuple):
    """A minute, as Postgres writes it, and the lowest ride for which it is not right yet."""

    minute: str
    lowest: int


class MarksLost(Unavailable):
    """Redis no longer has every minute that was marked: they are marked again."""

    def __init__(self) -> None:
        super().__init__("Redis has lost dirty minutes; marking them again")


class DirtyMinutes:
    """The dirty set of the generation `name`, in the Redis that holds the log.

    Every method raises redis.RedisError.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.count = 0
        self._log = log
        self._key = rollup_key(log.name, name)
        self._server = log.replication_id()  # before the first write

    def add(self, marks: Sequence[Mark]) -> None:
        """Mark minutes. One that is marked already keeps its lowest ride."""
        for start in range(0, len(marks), AT_ONCE):
            pairs: list[float | str] = []
            for minute, ride in marks[start : start + AT_ONCE]:
                pairs += _score(ride), minute
            self.count += int(self._log.command("ZADD", self._key, "LT", *pairs))

    def first(self, size: int) -> list[Mark]:
        """Up to `size` minutes: those with the lowest rides, in their order."""
        flat = self._log.command("ZRANGE", self._key, 0, size - 1, "WITHSCORES")
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return [Mark(minute.decode(), int(float(score))) for minute, score in pairs]

    def remove(self, marks: Sequence[Mark]) -> None:
        """Take minutes out that were computed, or set aside."""
        minutes = (mark.minute for mark in marks)
        self.count -= int(self._log.command("ZREM", self._key, *minutes))

    def lowest(self) -> int | None:
        """The lowest ride that is not rolled up yet; None when nothing is dirty.

        Raises MarksLost when the set does not hold what it must, or when another server, which may
        lack the last writes, has taken the place of the first one.
        """
        first = self.first(1)
        if int(self._log.command("ZCARD", self._key)) != self.count:
            raise MarksLost
        if self._log.replication_id() != self._server:
            raise MarksLost
        return first[0].lowest if first else None

    def delete(self) -> None:
        """Delete the set, if it is there."""
        self._log.command("UNLINK", self._key)


def _score(ride: int) -> float:
    """The greatest double that is not above the ride's id: the id itself below 2^53."""
    score = float(ride)
    return score if int(score) <= ride else math.nextafter(score, 0)
