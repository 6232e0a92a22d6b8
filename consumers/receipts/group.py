"""A consumer group's member: every command of it, on Redis 6.2 and newer and on Valkey.

A group hands each entry to one of its members and keeps it *pending* until it is acknowledged. It
begins and ends with its stream: a flush, or whoever deletes the stream, deletes it too, and then
every method here raises GroupGone. What the servers differ in, and what is easily lost:

* A read that waits on a stream that is deleted sleeps on to its time-out on 6.2; newer ones wake.
* An entry that was trimmed stays pending, under an id without fields. Claiming it says nothing on
  6.2, and drops it without a word on newer ones: `claim` looks, and says which ones are gone.
* XCLAIM takes an entry from whoever has it: `claim` and `keep` first look who that is.
* A member that asks and is given nothing is not noticed by 6.2: it does not appear, and stays idle.
* Removing a member drops what is pending under its name: `remove_member` looks first.

Each such look and what follows it is one script, so one atomic step.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import redis

from rocket_rides.groups import positions
from rocket_rides.log import START, Entry, Log, as_numbers, entries

# Without the stream, XINFO says "no such key" and XGROUP that it "requires the key to exist"; 7.0
# says UNBLOCKED to a member that was waiting.
SIGNS_OF_ITS_END = ("NOGROUP", "UNBLOCKED", "no such key", "requires the key to exist")
GREATEST_ID = f"{2**64 - 1}-{2**64 - 1}"

# KEYS: the stream. ARGV: the group, this member, whom to claim from, milliseconds, then ids.
CLAIM = """
local key, group, member, owner, idle = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local claimed, gone = {}, {}
for i = 5, #ARGV do
  local id = ARGV[i]
  local pending = redis.call('XPENDING', key, group, 'IDLE', idle, id, id, 1, owner)
  if #pending == 1 then
    if #redis.call('XRANGE', key, id, id) == 0 then
      redis.call('XACK', key, group, id)
      gone[#gone + 1] = id
    else
      claimed[#claimed + 1] = redis.call('XCLAIM', key, group, member, 0, id)[1]
    end
  end
end
return {claimed, gone}
"""
# ARGV: the group, this member, then ids. JUSTID leaves the number of deliveries as it is.
KEEP = """
local key, group, member, kept = KEYS[1], ARGV[1], ARGV[2], {}
for i = 3, #ARGV do
  local id = ARGV[i]
  if #redis.call('XPENDING', key, group, id, id, 1, member) == 1 then
    local renewed = redis.call('XCLAIM', key, group, member, 0, id, 'JUSTID')
    kept[#kept + 1] = renewed[1]
  end
end
return kept
"""
# ARGV: the group, how many, the id after which to begin. An entry that was trimmed has no fields.
PENDING_ENTRIES = """
local key, group, found = KEYS[1], ARGV[1], {}
for _, pending in ipairs(redis.call('XPENDING', key, group, '(' .. ARGV[3], '+', ARGV[2])) do
  local entry = redis.call('XRANGE', key, pending[1], pending[1])[1]
  found[#found + 1] = {pending[1], entry and entry[2] or {}}
end
return found
"""
# ARGV: the group, the member to remove.
REMOVE_MEMBER = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
"""


class GroupGone(redis.ResponseError):
    """There is no such group, because nobody made it or because the stream was deleted."""


class Pending(NamedTuple):
    """An entry that was delivered to `member`, `deliveries` times, and is not acknowledged."""

    redis_id: str
    member: str
    idle_ms: int  # since it was delivered, claimed or kept; 0 when Redis' clock was set back
    deliveries: int


class Member(NamedTuple):
    """A member of a group; `idle_ms` counts since it last asked for anything."""

    name: str
    pending: int
    idle_ms: int


class Claimed(NamedTuple):
    """What a claim took over; `gone` are ids whose entry was trimmed: acknowledged, not claimed."""

    entries: list[Entry]
    gone: list[str]


class Group:
    """The group `group` of the log, used by its member `member`, on the log's connection.

    Every method raises redis.RedisError: GroupGone where there is no such group.
    """

    def __init__(self, log: Log, group: str, member: str) -> None:
        self.name = group
        self.member = member
        self._log = log

    def make(self, start_id: str = START) -> bool:
        """Make the group, and the stream if need be, unless it exists; returns whether it is new.

        Its members are given the entries after `start_id`.
        """
        try:
            self._log.command("XGROUP", "CREATE", self._log.name, self.name, start_id, "MKSTREAM")
        except redis.ResponseError as error:
            if "BUSYGROUP" in str(error):
                return False
            raise
        return True

    def read(self, count: int, wait: float = 0) -> list[Entry]:
        """Be given up to `count` entries that no member has had.

        Waits up to `wait` seconds for the first, which must be less than `log.SOCKET_TIMEOUT`.
        """
        blocking = ["BLOCK", max(1, int(wait * 1000))] if wait else []
        words = ["GROUP", self.name, self.member, "COUNT", count, *blocking]
        reply = self._command("XREADGROUP", *words, "STREAMS", self._log.name, ">")
        return entries(reply[0][1]) if reply else []

    def ack(self, ids: Iterable[str]) -> int:
        """Acknowledge entries, whoever has them; returns how many were pending."""
        acknowledged = list(ids)
        if not acknowledged:
            return 0
        return int(self._command("XACK", self._log.name, self.name, *acknowledged))

    def pending(
        self, count: int, after: str = START, member: str | None = None, min_idle_ms: int = 0
    ) -> list[Pending]:
        """The first `count` pending entries after the id `after`, of all members or of one."""
        if after == GREATEST_ID:
            return []
        words = ["IDLE", min_idle_ms, f"({after}", "+", count, *([member] if member else [])]
        reply = self._command("XPENDING", self._log.name, self.name, *words)
        return [
            Pending(redis_id.decode(), who.decode(), int(idle), int(deliveries))
            for redis_id, who, idle, deliveries in reply
        ]

    def pending_entries(self, count: int, after: str = START) -> list[Entry]:
        """The first `count` pending entries after the id `after`; one that was trimmed is empty."""
        if after == GREATEST_ID:
            return []
        return entries(self._run(PENDING_ENTRIES, count, after))

    def claim(self, ids: Iterable[str], from_member: str, min_idle_ms: int = 0) -> Claimed:
        """Take over those of `ids` that `from_member` has had for that long. It is a delivery."""
        reply = self._run(CLAIM, self.member, from_member, min_idle_ms, *ids)
        return Claimed(entries(reply[0]), [redis_id.decode() for redis_id in reply[1]])

    def keep(self, ids: Iterable[str]) -> list[str]:
        """Begin anew to count the idle time of those of `ids` that are still ours; returns them.

        The heartbeat of a slow delivery. What is not returned was claimed or acknowledged by
        somebody else, or its entry is gone.
        """
        reply = self._run(KEEP, self.member, *ids)
        return [redis_id.decode() for redis_id in reply]

    def members(self) -> list[Member]:
        """All members that ever asked for anything and were not removed."""
        reply = self._command("XINFO", "CONSUMERS", self._log.name, self.name)
        found = [dict(zip(facts[::2], facts[1::2], strict=True)) for facts in reply]
        return [Member(m[b"name"].decode(), int(m[b"pending"]), int(m[b"idle"])) for m in found]

    def remove_member(self, member: str) -> bool:
        """Remove a member unless something is pending under its name; returns whether it went."""
        return bool(self._run(REMOVE_MEMBER, member))

    def last_delivered(self) -> str:
        """The id of the last entry that was given to any member."""
        for group in positions(self._log):
            if group.name == self.name:
                return group.last_delivered
        raise GroupGone(f"Redis: NOGROUP there is no group {self.name}")

    def unread(self, count: int, after: str = START) -> list[Entry]:
        """The first `count` entries after the id `after` that no member has been given yet."""
        start = max(after, self.last_delivered(), key=as_numbers)
        return self._log.read(start, count)

    def _command(self, *words: object) -> Any:
        with _noticing_its_end():
            return self._log.command(*words)

    def _run(self, script: str, *values: object) -> Any:
        with _noticing_its_end():
            return self._log.run(script, self.name, *values)


@contextmanager
def _noticing_its_end() -> Iterator[None]:
    try:
        yield
    except redis.ResponseError as error:
        if any(sign in str(error) for sign in SIGNS_OF_ITS_END):
            raise GroupGone(str(error)) from None
        raise
