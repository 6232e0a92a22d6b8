"""The consumer group: it shares out the reading of the log among the workers.

A group hands each entry to one of its members and keeps it *pending* until it is acknowledged. It
begins and ends with its stream: a flush, or whoever deletes the stream, deletes it too, and then
every method here raises GroupGone. On Redis 6.2 and newer and on Valkey:

* A read that waits on a stream that is deleted sleeps on to its time-out on 6.2; newer ones wake.
* An entry that was trimmed stays pending, under an id without fields. XAUTOCLAIM answers nil for it
  on 6.2, without its id: so `take_over` looks, and acknowledges it. The sweep finds its ride.
* Removing a member drops what is pending under its name: `leave` looks first.

Each such look and what follows it is one script, so one atomic step.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import redis
from redis.asyncio import Redis

from rocket_rides.log import START, Entry, entries
from rocket_rides.log.errors import naming_the_server

TIMEOUT = 5.0  # seconds
# Without the stream, XINFO says "no such key" and XGROUP that it "requires the key to exist"; 7.0
# says UNBLOCKED to a member that was waiting.
SIGNS_OF_ITS_END = ("NOGROUP", "UNBLOCKED", "no such key", "requires the key to exist")

# KEYS: the stream. ARGV: the group, this member, for how many milliseconds an entry must have been
# pending, how many at most, and, optionally, under whose name.
TAKE_OVER = """
local key, group, member, claimed = KEYS[1], ARGV[1], ARGV[2], {}
local ask = {'XPENDING', key, group, 'IDLE', ARGV[3], '-', '+', ARGV[4]}
if ARGV[5] then ask[#ask + 1] = ARGV[5] end
for _, pending in ipairs(redis.call(unpack(ask))) do
  local id = pending[1]
  if #redis.call('XRANGE', key, id, id) == 0 then
    redis.call('XACK', key, group, id)
  else
    claimed[#claimed + 1] = redis.call('XCLAIM', key, group, member, 0, id)[1]
  end
end
return claimed
"""
# ARGV: the group, this member.
LEAVE = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
end
"""


class GroupGone(redis.ResponseError):
    """There is no such group, because nobody made it or because the stream was deleted."""


class Group:
    """The group `name` of the stream, used by its member `member`. For one event loop.

    Every method raises redis.RedisError: GroupGone where there is no such group.
    """

    def __init__(self, url: str, stream: str, name: str, member: str) -> None:
        self.name = name
        self.member = member
        self._stream = stream
        # As `rocket_rides.log.Log` does: a whole batch is retried, not a command; flat replies.
        with naming_the_server():
            self.redis = Redis.from_url(
                url,
                protocol=2,
                retry=None,
                socket_timeout=None,  # see `_answering`
                socket_connect_timeout=None,
                single_connection_client=True,
            )
        self.redis.response_callbacks.clear()

    async def aclose(self) -> None:
        """Close the connection."""
        await self.redis.aclose()

    async def make(self) -> bool:
        """Make the group, and the stream if need be, unless it exists; returns whether it is new.

        Its members are given all entries that there are.
        """
        try:
            await self._command("XGROUP", "CREATE", self._stream, self.name, START, "MKSTREAM")
        except redis.ResponseError as error:
            if "BUSYGROUP" in str(error):
                return False
            raise
        return True

    async def read(self, count: int, wait: float = 0) -> list[Entry]:
        """Be given up to `count` entries that no member has had.

        Waits up to `wait` seconds for the first, which must be less than TIMEOUT.
        """
        blocking = ["BLOCK", max(1, int(wait * 1000))] if wait else []
        words = ["GROUP", self.name, self.member, "COUNT", count, *blocking]
        reply = await self._command("XREADGROUP", *words, "STREAMS", self._stream, ">")
        return entries(reply[0][1]) if reply else []

    async def take_over(self, count: int, idle: float, member: str | None = None) -> list[Entry]:
        """Up to `count` entries that have been pending for `idle` seconds, under any member's name.

        Or under that of `member`. Those that were trimmed are acknowledged, and not returned.
        """
        of = [member] if member else []
        return entries(await self._run(TAKE_OVER, self.member, int(idle * 1000), count, *of))

    async def acknowledge(self, redis_ids: Sequence[str]) -> None:
        if redis_ids:
            await self._command("XACK", self._stream, self.name, *redis_ids)

    async def leave(self) -> None:
        """Remove this member, unless something is pending under its name."""
        await self._run(LEAVE, self.member)

    async def _command(self, *words: Any) -> Any:
        async with _answering():
            return await self.redis.execute_command(*words)  # type: ignore[no-untyped-call]

    async def _run(self, script: str, *values: Any) -> Any:
        async with _answering():
            run = self.redis.register_script(script)
            return await run(keys=[self._stream], args=[self.name, *values])


@asynccontextmanager
async def _answering() -> AsyncIterator[None]:
    """Raise what Redis says, or that it says nothing, with a message that names it.

    The time limit is ours: redis-py's own is by `asyncio.wait_for`, which on Python 3.11 may
    swallow that the task is cancelled; its worker would never end.
    """
    try:
        with naming_the_server():
            async with asyncio.timeout(TIMEOUT):
                yield
    except TimeoutError:
        raise redis.ConnectionError(f"Redis: no answer within {TIMEOUT:g} s") from None
    except redis.ResponseError as error:
        gone = any(sign in str(error) for sign in SIGNS_OF_ITS_END)
        raise (GroupGone(str(error)) if gone else error) from None
