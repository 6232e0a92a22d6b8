"""The consumer group: it shares out the reading of the log among the workers.

A group hands each entry to one of its members and keeps it *pending* until it is acknowledged. On
Redis 6.2 and newer and on Valkey:

* A group begins and ends with its stream: a flush, or whoever deletes the stream, deletes it too.
  Then a read says NOGROUP. A read that was waiting sleeps on to its time-out on 6.2; newer servers
  wake it with UNBLOCKED.
* An entry that was trimmed stays pending, under an id without fields. XAUTOCLAIM answers nil for it
  on 6.2, without its id: so `take_over` looks, and acknowledges it, in one script. The sweep finds
  its ride.
* Removing a member drops what is pending under its name, so nobody removes one: a worker is started
  again under its name.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import redis

from unified_log.database import one_row
from unified_log.log import CUT_LONGER, KEPT, START, Entry, Forbidden, Log, entries

# KEYS: the stream. ARGV: the group, this member, for how many milliseconds an entry must have been
# pending, how many at most, and, optionally, under whose name. It ends early once the entries are
# MOST bytes, and cuts long fields: what a script reads, the server has in memory several times.
MOST = 8_000_000
TAKE_OVER = f"""
local key, group, member, claimed, size = KEYS[1], ARGV[1], ARGV[2], {{}}, 0
local ask = {{'XPENDING', key, group, 'IDLE', ARGV[3], '-', '+', ARGV[4]}}
if ARGV[5] then ask[#ask + 1] = ARGV[5] end
for _, pending in ipairs(redis.call(unpack(ask))) do
  local id = pending[1]
  local entry = redis.call('XRANGE', key, id, id)[1]
  if not entry then
    redis.call('XACK', key, group, id)
  else
    redis.call('XCLAIM', key, group, member, 0, id, 'JUSTID')
    for i, value in ipairs(entry[2]) do
      size = size + #value
      if #value > {CUT_LONGER} then
        entry[2][i] = value:sub(1, {KEPT - 32}) .. '... (' .. #value .. ' bytes)'
      end
    end
    claimed[#claimed + 1] = entry
    if size > {MOST} then break end
  end
end
return claimed
"""

# The oid, because a cluster has several databases, and another one may get this one's name. All
# copies of a cluster have its identifier: a restored database finds the group that it had before.
IDENTITY = """
    SELECT system_identifier::text, oid::text FROM pg_control_system(), pg_database
    WHERE datname = current_database()
"""


def name_of(connection: psycopg.Connection) -> str:
    """The name of this database's group. Raises psycopg.Error."""
    cluster, oid = one_row(connection.execute(IDENTITY))
    return f"receipts-{cluster}-{oid}"


class GroupGone(redis.ResponseError):
    """There is no such group, or no stream: it begins anew, with all entries that there are."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Redis has no group {name} (NOGROUP): it was deleted with the log, and begins anew"
        )


@dataclass
class Group:
    """The group `name` of the log, used by its member `member`.

    Every method raises redis.RedisError: GroupGone where there is no such group.
    """

    log: Log
    name: str
    member: str

    def make(self) -> None:
        """Make the group, and the stream if need be, unless it exists.

        The members of a new one are given all entries that there are.
        """
        try:
            self.log.command("XGROUP", "CREATE", self.log.name, self.name, START, "MKSTREAM")
        except Forbidden:
            raise
        except redis.ResponseError:
            pass  # there is one; or Redis is full, and the first read says whether there is

    def read(self, count: int, wait: float = 0) -> list[Entry]:
        """Read up to `count` entries that no member has had.

        Waits up to `wait` seconds for the first.
        """
        blocking = ["BLOCK", max(1, int(wait * 1000))] if wait else []
        words = ["GROUP", self.name, self.member, "COUNT", count, *blocking]
        with self._there():
            reply = self.log.command("XREADGROUP", *words, "STREAMS", self.log.name, ">")
        if not reply:
            self.log.require_primary()
        return entries(reply[0][1]) if reply else []

    def take_over(self, count: int, idle: float, member: str | None = None) -> list[Entry]:
        """Up to `count` entries that have been pending for `idle` seconds, under any member's name.

        Or under that of `member`. Fewer where they are large, but at least one while there is any.
        Those that were trimmed are acknowledged, and not returned.
        """
        of = [member] if member else []
        milliseconds = int(idle * 1000)
        with self._there():
            reply = self.log.run(TAKE_OVER, self.name, self.member, milliseconds, count, *of)
        return entries(reply)

    def acknowledge(self, redis_ids: Sequence[str]) -> None:
        self.log.command("XACK", self.log.name, self.name, *redis_ids)

    @contextmanager
    def _there(self) -> Iterator[None]:
        try:
            yield
        except redis.ResponseError as error:
            if "NOGROUP" in str(error) or "UNBLOCKED" in str(error):
                raise GroupGone(self.name) from None
            raise
