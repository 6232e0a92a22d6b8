"""Readers: whoever holds the log back, in this fleet or outside it.

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

from contextlib import suppress

import psycopg

from rocket_rides import groups
from rocket_rides.groups import GroupState
from rocket_rides.log import START, Forbidden, Log, as_numbers

CHECKPOINTS = "SELECT last_redis_id FROM checkpoints"


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
