"""The stream's consumer groups: how far each of them is."""

from typing import NamedTuple

from unified_log.log import Log

# For each group: its name, the first pending id or '', and the last delivered one.
POSITIONS = """
local call, key, positions = redis.call, KEYS[1], {}
if call('EXISTS', key) == 0 then return positions end
for _, group in ipairs(call('XINFO', 'GROUPS', key)) do
  local facts = {}
  for i = 1, #group, 2 do facts[group[i]] = group[i + 1] end
  local first = call('XPENDING', key, facts['name'], '-', '+', 1)[1]
  positions[#positions + 1] = {facts['name'], first and first[1] or '', facts['last-delivered-id']}
end
return positions
"""


class GroupState(NamedTuple):
    """How far a group is: all entries up to `last_delivered` are done, except the pending ones."""

    name: str
    first_pending: str | None
    last_delivered: str


def positions(log: Log) -> list[GroupState]:
    """How far every group of the stream is, all at one moment. Raises redis.RedisError."""
    return [
        GroupState(name.decode(errors="replace"), first.decode() or None, last.decode())
        for name, first, last in log.run(POSITIONS)
    ]
