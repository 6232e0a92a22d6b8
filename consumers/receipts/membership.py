"""Membership: a worker is a member of the group for as long as its session with Postgres lasts.

A member that lives holds an advisory lock, numbered after the group and the member. One that has
been seen without it for GONE_AFTER seconds is gone, and what is pending under its name is claimed,
whatever Redis' clock says. Not sooner, since a restart of Postgres ends all locks, and whoever is
back first must not take from the others what they have under way. One that holds its lock and shows
no sign of life, because it hangs or its machine does, loses what it has not kept alive for
CLAIM_AFTER seconds. The name of a member that is gone and has nothing pending is removed.
"""

import hashlib
import time
from collections.abc import Collection, Sequence

import psycopg

from consumers.receipts.group import Group
from rocket_rides.database import one_row
from rocket_rides.log import START, Entry

PAGE = 500  # entries
# Seconds; or CLAIM_AFTER, if that is less. Whoever lost a server tries to come back every 2 s.
GONE_AFTER = 3.0

TRY = "SELECT pg_try_advisory_lock(%s)"
# pg_locks shows the two halves of a lock's number.
HELD = """
    SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (classid::bigint << 32) | objid::bigint = ANY(%s::bigint[])
"""


def lock_of(group: str, member: str) -> int:
    """The number of the advisory lock that is this member's life."""
    name = f"{group}/{member}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], signed=True)


class Membership:
    """One member's view of its group, on its connections."""

    def __init__(self, connection: psycopg.Connection, group: Group, claim_after: float) -> None:
        self._connection = connection
        self._group = group
        self.claim_after = claim_after
        self.gone_after = min(GONE_AFTER, claim_after)
        self._lockless: dict[str, float] = {}  # member -> since when

    def join(self) -> bool:
        """Live, unless another session of this name does; never waits."""
        lock = lock_of(self._group.name, self._group.member)
        taken: bool = one_row(self._connection.execute(TRY, [lock]))[0]
        return taken

    def gone(self, members: Sequence[str]) -> set[str]:
        """Those of `members` that do not live, as far as this session has seen."""
        locks = {lock_of(self._group.name, member): member for member in members}
        alive = {locks[held] for (held,) in self._connection.execute(HELD, [list(locks)])}
        now = time.monotonic()
        lockless = set(members) - alive
        self._lockless = {name: self._lockless.get(name, now) for name in lockless}
        return {name for name in lockless if now - self._lockless[name] >= self.gone_after}

    def claim(self, room: int, in_hand: Collection[str]) -> list[Entry]:
        """Take over up to `room` entries of members that are gone or hang, and of our former self.

        `in_hand` is what this worker knows to be pending under its own name. If there is more, it
        is a former session's, or a reply got lost. Ids whose entry was trimmed are acknowledged:
        their rides are the sweep's. Names that are gone for good are removed.
        """
        claimed: list[Entry] = []
        members = self._group.members()
        others = [member.name for member in members if member.name != self._group.member]
        gone = self.gone(others) if others else set()
        for name, pending, _ in members:
            if name == self._group.member and pending <= len(in_hand):
                continue
            if pending == 0:
                if name in gone:
                    self._group.remove_member(name)
                continue
            hangs = name != self._group.member and name not in gone
            idle = int(self.claim_after * 1000) if hangs else 0
            claimed += self._claim_from(name, idle, room - len(claimed), in_hand)
        return claimed

    def _claim_from(
        self, member: str, idle: int, room: int, in_hand: Collection[str]
    ) -> list[Entry]:
        claimed: list[Entry] = []
        after = START
        while len(claimed) < room and (
            page := self._group.pending(PAGE, after, member, min_idle_ms=idle)
        ):
            after = page[-1].redis_id
            ids = [entry.redis_id for entry in page if entry.redis_id not in in_hand]
            ids = ids[: room - len(claimed)]
            if ids:
                claimed += self._group.claim(ids, member, idle).entries
        return claimed
