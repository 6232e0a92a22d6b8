"""Trimming: the log lets go of what every reader is past, and never outgrows its caps.

A reader is

* a row in `checkpoints`: a consumer of this project, or a program in any other language that keeps
  its own row up to date; or
* a consumer group of the stream, whoever made it: it holds back what none of its members has been
  given, and what is pending in it.

The log keeps what any of them has not read, up to its caps. A group of another database (of another
fleet on the stream, or of this one before it was set up anew) holds nothing back any more once none
of its members has asked for anything for as long as the log keeps an entry at most; but where
Postgres does not tell which group is this database's, every one counts.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import psycopg

from rocket_rides import groups
from rocket_rides.groups import GroupState
from rocket_rides.log import START, Forbidden, Log, as_numbers

CHECKPOINTS = "SELECT last_redis_id FROM checkpoints"


class Caps(NamedTuple):
    """What the log keeps at most, even for a reader that has not read it.

    They protect Redis' memory from a reader that never comes back; one that does come back finds a
    gap and heals it from the rides.
    """

    length: int  # entries
    age: float  # seconds, by Redis' clock


class Readers:
    """The readers of `log`; `patience` is for how many seconds another database's group counts.

    Methods raise psycopg.Error and redis.RedisError.
    """

    def __init__(self, connection: psycopg.Connection, log: Log, patience: float) -> None:
        self._connection = connection
        self._log = log
        self._patience = patience
        self._own_group = groups.name_if_known(connection)

    def slowest(self) -> str:
        """The id before which no reader needs anything; the log's start while there is no reader.

        Where Redis forbids this user to look at the groups, it is that of the checkpoints alone.
        """
        needed = [redis_id for (redis_id,) in self._connection.execute(CHECKPOINTS)]
        with suppress(Forbidden):
            needed += map(needed_by, filter(self._counts, groups.positions(self._log)))
        return min(needed, key=as_numbers, default=START)

    def _counts(self, group: GroupState) -> bool:
        idle = group.idle_ms is not None and group.idle_ms >= self._patience * 1000
        return self._own_group in (group.name, None) or not idle


def needed_by(group: GroupState) -> str:
    """The id before which the group needs nothing: its lowest pending, else the last delivered."""
    return group.first_pending or group.last_delivered


class Trimmer:
    """Trims `log`, for one session. Methods raise psycopg.Error and redis.RedisError."""

    def __init__(self, connection: psycopg.Connection, log: Log, caps: Caps) -> None:
        self._readers = Readers(connection, log, caps.age)
        self._log = log
        self._caps = caps

    def trim(self) -> int:
        """Drop entries that every reader is past, and whatever exceeds a cap; returns how many."""
        return (
            self._log.trim_before(self._readers.slowest())
            + self._log.trim_before(self._oldest_to_keep(), exactly=True)
            + self._log.trim_to(self._caps.length)
        )

    def make_room(self) -> int:
        """Redis has no memory left: drop what every reader is past, else half of the log."""
        past = self._log.trim_before(self._readers.slowest(), exactly=True)
        return past or self._log.trim_to(self._log.length() // 2, exactly=True)

    def _oldest_to_keep(self) -> str:
        """By Redis' clock. Where that was set back, newer ids go on from those that there are."""
        try:
            return f"{max(0, int(self._log.clock() - self._caps.age * 1000))}-0"
        except Forbidden:
            return START


def warnings(connection: psycopg.Connection, log: Log) -> list[str]:
    """Warnings about what the servers do not let their users trim by; usually none."""
    looks: list[tuple[Callable[[], object], str]] = [
        (lambda: groups.positions(log), "trimming does not wait for consumer groups"),
        (log.clock, "entries are kept whatever their age"),
    ]
    found = []
    for look, without in looks:
        try:
            look()
        except Forbidden as refusal:
            found.append(f"{without}, because Redis does not let this user look: {refusal}")
    if groups.name_if_known(connection) is None:
        found.append(
            "trimming waits for every consumer group, also for an idle one of another database,"
            " because Postgres does not let this user call pg_control_system()"
        )
    return found
