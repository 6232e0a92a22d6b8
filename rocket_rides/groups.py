"""The stream's consumer groups: which one is this database's, and how far each of them is."""

from contextlib import suppress
from typing import NamedTuple

import psycopg

from rocket_rides.database import one_row
from rocket_rides.log import Log

# The oid, because a cluster has several databases; a name can be given away. A cluster keeps its
# identifier in all of its copies: a restored database finds the group of its own earlier self.
IDENTITY = """
    SELECT system_identifier::text, oid::text FROM pg_control_system(), pg_database
    WHERE datname = current_database()
"""
OURS = "receipts"  # what the name of every fleet's group begins with

# For each group: its name, how much is pending, the first pending id or '', and the last delivered
# one. ARGV: how the names of the fleets' groups begin. Of those also for how many milliseconds none
# of its members has asked for anything; where it has no member, since the last delivered entry.
POSITIONS = """
local call, key, positions = redis.call, KEYS[1], {}
local function facts(list)
  local found = {}
  for i = 1, #list, 2 do found[list[i]] = list[i + 1] end
  return found
end
local function idle_time(name, last)
  local now = call('TIME')
  local idle = math.max(0, now[1] * 1000 - tonumber(string.match(last, '%d+')))
  for _, member in ipairs(call('XINFO', 'CONSUMERS', key, name)) do
    idle = math.min(idle, facts(member)['idle'])
  end
  return string.format('%.0f', idle)
end
if call('EXISTS', key) == 0 then return positions end
for _, group in ipairs(call('XINFO', 'GROUPS', key)) do
  group = facts(group)
  local name, last = group['name'], group['last-delivered-id']
  local first, idle = call('XPENDING', key, name, '-', '+', 1)[1], ''
  if string.sub(name, 1, #ARGV[1]) == ARGV[1] then idle = idle_time(name, last) end
  positions[#positions + 1] = {name, group['pending'], first and first[1] or '', last, idle}
end
return positions
"""


class GroupState(NamedTuple):
    """How far a group is: all entries up to `last_delivered` are done, but for those pending.

    `idle_ms` tells, of a fleet's group, for how long none of its members has asked for anything.
    """

    name: str
    pending: int
    first_pending: str | None
    last_delivered: str
    idle_ms: int | None


def name_of(connection: psycopg.Connection) -> str:
    """The name of this database's group. Raises psycopg.Error."""
    cluster, oid = one_row(connection.execute(IDENTITY))
    return f"{OURS}-{cluster}-{oid}"


def name_if_known(connection: psycopg.Connection) -> str | None:
    """The same; None where Postgres does not let this user ask for the cluster's identifier."""
    with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
        return name_of(connection)
    return None


def positions(log: Log) -> list[GroupState]:
    """How far every group of the stream is, all at one moment. Raises redis.RedisError."""
    return [
        GroupState(
            name.decode(errors="replace"),
            int(pending),
            first.decode() or None,
            last.decode(),
            int(idle) if idle else None,
        )
        for name, pending, first, last, idle in log.run(POSITIONS, f"{OURS}-")
    ]
