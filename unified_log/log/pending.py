"""What the log's consumer groups have in flight: `python -m unified_log.log --pending`.

A group hands each entry to one of its members, and keeps it *pending* until it is acknowledged. Of
each group of the stream, whoever made it, there is a line about itself, one about each member, and
one about each pending entry, by id: whose it is, how long ago it was handed to it, and how often it
was handed to anyone. What stays pending was read by a member that hangs or died.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import redis

from unified_log import words
from unified_log.log.entries import START, as_numbers
from unified_log.log.lines import appended_at, json_line
from unified_log.log.places import GREATEST, SMALLEST, after
from unified_log.log.stream import Log

PAGE = 1000  # pending entries
IN_JSON = """
With --pending, it has

    group, members, pending, last_delivered                    of a group: how many, and up to where
    group, member, pending, idle_seconds                       of a member
    group, redis_id, member, idle_seconds, deliveries          of a pending entry
"""


class Group(NamedTuple):
    """As XINFO GROUPS tells."""

    group: str
    members: int
    pending: int
    last_delivered: str  # a stream id

    @property
    def line(self) -> str:
        return (
            f"{self.group}  {words.count(self.members, 'member')}, {self.pending:,} pending,"
            f" handed out to {self.last_delivered}"
        )


class Member(NamedTuple):
    """As XINFO CONSUMERS tells."""

    group: str
    member: str
    pending: int
    idle_seconds: float  # since it asked for entries, or was given or acknowledged some

    @property
    def line(self) -> str:
        return f"  {self.member}  {self.pending:,} pending, idle for {_age(self.idle_seconds)}"


class Pending(NamedTuple):
    """As XPENDING tells."""

    group: str
    redis_id: str
    member: str
    idle_seconds: float
    deliveries: int

    @property
    def line(self) -> str:
        when = appended_at(self.redis_id) or "after the year 9999"
        handed = f"{_age(self.idle_seconds)} ago, {words.count(self.deliveries, 'delivery')}"
        return f"    {when:24}  {self.redis_id:>20}  {self.member}  {handed}"


def lines(log: Log, count: int | None, *, as_json: bool) -> Iterator[str]:
    """What is pending, but no more than `count` entries. Raises redis.RedisError."""
    groups = _groups(log)
    if not groups and not as_json:
        there_is = log.last_id() != START
        yield f"{log.name} has no consumer group" if there_is else f"there is no stream {log.name}"
    for name in groups:
        for row in _rows(log, name, groups[name], count):
            yield json_line(row._asdict()) if as_json else row.line
            if isinstance(row, Pending) and count is not None:
                count -= 1


def _groups(log: Log) -> dict[bytes, Group]:
    """By name; none where there is no stream."""
    try:
        reply = log.command("XINFO", "GROUPS", log.name)
    except redis.ResponseError as error:
        if "no such key" in str(error):
            return {}
        raise
    return {
        each[b"name"]: Group(
            _text(each[b"name"]),
            each[b"consumers"],
            each[b"pending"],
            each[b"last-delivered-id"].decode(),
        )
        for each in map(_named, reply)
    }


def _rows(
    log: Log, name: bytes, group: Group, count: int | None
) -> Iterator[Group | Member | Pending]:
    yield group
    for each in map(_named, log.command("XINFO", "CONSUMERS", log.name, name)):
        member, idle = _text(each[b"name"]), each[b"idle"] / 1000
        yield Member(group.group, member, each[b"pending"], idle)
    first = SMALLEST
    while first <= GREATEST and count != 0:
        page = PAGE if count is None else min(PAGE, count)
        reply = log.command("XPENDING", log.name, name, "{}-{}".format(*first), "+", page)
        for redis_id, member, idle, deliveries in reply:
            yield Pending(group.group, redis_id.decode(), _text(member), idle / 1000, deliveries)
        if len(reply) < page:
            return
        count = None if count is None else count - page
        first = after(as_numbers(reply[-1][0].decode()))


def _named(facts: list[Any]) -> dict[bytes, Any]:
    """Names and values in turn."""
    return dict(zip(facts[::2], facts[1::2], strict=True))


def _text(name: bytes) -> str:
    """Whatever bytes somebody has chosen, they stay on one line."""
    return ascii(name.decode(errors="backslashreplace"))[1:-1]


def _age(seconds: float) -> str:
    return words.plain(words.age(seconds))
