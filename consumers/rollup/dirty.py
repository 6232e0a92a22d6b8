"""The dirty minutes: an Ick that one lead has to itself, by the lowest ride not rolled up yet."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from consumers.rollup.ick import Ick
from rocket_rides.errors import Unavailable
from rocket_rides.log import Log, naming_the_server
from rocket_rides.log.names import rollup_key

AT_ONCE = 1000  # pairs; Redis does nothing else meanwhile


class Mark(NamedTuple):
    """A minute, as Postgres writes it, and the lowest ride for which it is not right yet."""

    minute: str
    lowest: int


class MarksLost(Unavailable):
    """Redis no longer has every minute that was marked: they are marked again."""

    def __init__(self) -> None:
        super().__init__("Redis has lost dirty minutes; marking them again")


class DirtyMinutes:
    """The Ick of the generation `name`, in the Redis that holds the log.

    Every method raises redis.RedisError, also when the Ick is gone. Nobody else uses it, so how
    much it must hold is known: Redis drops an empty set, and one that was lost looks the same.
    """

    @naming_the_server()
    def __init__(self, log: Log, name: str) -> None:
        self.count = 0
        self._log = log
        self._ick = Ick(log.redis)
        self._key = rollup_key(log.name, name)
        self._server = log.replication_id()  # before the first write
        self._ick.ickadd(self._key)

    @naming_the_server()
    def add(self, marks: Sequence[Mark]) -> None:
        """Mark minutes. One that is marked already keeps its lowest ride."""
        for start in range(0, len(marks), AT_ONCE):
            pairs: list[float | str] = []
            for minute, ride in marks[start : start + AT_ONCE]:
                pairs += _score(ride), minute
            added, _ = self._ick.ickadd(self._key, *pairs, create=False)
            self.count += added

    @naming_the_server()
    def reserve(self, size: int) -> list[Mark]:
        """The minutes with the lowest rides, up to `size`."""
        reserved = self._ick.ickreserve(self._key, size, create=False)
        return [Mark(minute, int(score)) for minute, score in reserved]

    @naming_the_server()
    def commit(self, reserved: Sequence[Mark]) -> None:
        """Take minutes out that were reserved; one that was marked again meanwhile stays in."""
        minutes = (mark.minute for mark in reserved)
        self.count -= self._ick.ickcommit(self._key, *minutes, create=False)

    @naming_the_server()
    def lowest(self) -> int | None:
        """The lowest ride that is not rolled up yet; None when nothing is dirty.

        Raises MarksLost when the Ick does not hold what it must, or when another server, which may
        not have got the last writes, answers in place of the one that was asked first.
        """
        stats = self._ick.ickstats(self._key)
        if stats is None or stats["total_size"] != self.count:
            raise MarksLost
        if self._log.replication_id() != self._server:
            raise MarksLost
        return int(stats["total_min"]) if self.count else None


@naming_the_server()
def delete(log: Log, name: str) -> None:
    """Delete the Ick of an earlier generation, if it is there."""
    if name:
        Ick(log.redis).ickunlink(rollup_key(log.name, name))


def _score(ride: int) -> float:
    """The greatest double that is not above the ride's id: the id itself below 2^53."""
    score = float(ride)
    return score if int(score) <= ride else math.nextafter(score, 0)
