"""The dirty minutes of one lead, each with the lowest ride that is not rolled up yet.

They are in an Ick (`consumers.rollup.ick`) in the Redis that holds the log. The marker adds, while
the indexer reserves, computes and commits: a minute that is marked again before it is reserved
keeps its lowest ride, so many marks fold into one, and one that is marked while it is computed is
reserved once more.

Only the lead's two loops write to its Ick. So whatever Redis loses of it is noticed at the next
operation, and ends the lead.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from consumers.rollup.ick import IckLost, OwnedIck
from rocket_rides.rollup import rollup_key
from unified_log.errors import Unavailable
from unified_log.log import Log, naming_the_server

AT_ONCE = 1000  # minutes; Redis does nothing else meanwhile


class Mark(NamedTuple):
    """A minute, as Postgres writes it, and the lowest ride for which it is not right yet."""

    minute: str
    lowest: int


class MarksLost(Unavailable):
    """Redis has perhaps not every minute that was marked: they are marked again."""

    def __init__(self) -> None:
        super().__init__("the dirty minutes in Redis are not as they were left; marking them again")


class DirtyMinutes:
    """The Ick of the generation `name`, on a connection that both loops may use.

    Every method raises redis.RedisError, and MarksLost unless the Ick is as they left it.
    """

    def __init__(self, log: Log, name: str) -> None:
        self._ick = OwnedIck(log.redis)
        self._key = rollup_key(log.name, name)

    @property
    def count(self) -> int:
        """How many marks there are; a minute that is reserved and marked again counts twice."""
        with _losses():
            return self._ick.size(self._key)

    def add(self, marks: Sequence[Mark]) -> None:
        """Mark minutes. One that is marked already keeps its lowest ride."""
        for start in range(0, len(marks), AT_ONCE):
            pairs: list[float | str] = []
            for minute, ride in marks[start : start + AT_ONCE]:
                pairs += _score(ride), minute
            with _losses():
                self._ick.ickadd(self._key, *pairs)

    def reserve(self, size: int) -> list[Mark]:
        """Up to `size` minutes to be computed now: those with the lowest rides, in their order."""
        with _losses():
            reserved = self._ick.ickreserve(self._key, size)
        return [Mark(minute, int(score)) for minute, score in reserved]

    def commit(self, marks: Sequence[Mark]) -> None:
        """Take out what was computed, or set aside, since it was last reserved."""
        with _losses():
            self._ick.ickcommit(self._key, *(mark.minute for mark in marks))

    def lowest(self) -> int | None:
        """The lowest ride that is not rolled up yet, reserved or not; None if nothing is dirty."""
        with _losses():
            stats = self._ick.ickstats(self._key) or {}
        return int(stats["total_min"]) if stats.get("total_size") else None

    def delete(self) -> None:
        """Delete the Ick, if it is there."""
        with _losses():
            self._ick.ickdel(self._key)


@contextmanager
def _losses() -> Iterator[None]:
    """Raise MarksLost where the Ick is not as we left it, and other errors naming Redis."""
    with naming_the_server():
        try:
            yield
        except IckLost:
            raise MarksLost from None


def _score(ride: int) -> float:
    """The greatest double that is not above the ride's id: the id itself below 2^53."""
    score = float(ride)
    return score if int(score) <= ride else math.nextafter(score, 0)
