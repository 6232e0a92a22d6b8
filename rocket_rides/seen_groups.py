"""How far the stream's consumer groups are, and which rides their positions stand for."""

import re
from typing import NamedTuple

from rocket_rides import groups
from rocket_rides.groups import GroupState
from rocket_rides.log import Entry, Invalid, Log, as_numbers, decode, entries
from rocket_rides.terms import TERM_BYTES

MOST_GROUPS = 100  # on one stream; the others are not shown

# The entry at each pending id, and the last one up to each delivered id: at most one of each. ARGV:
# how many pending ids there are, then those, then the others.
ENTRIES = """
local key, pending, found = KEYS[1], tonumber(ARGV[1]), {}
for i = 2, #ARGV do
  if i <= pending + 1 then
    found[#found + 1] = redis.call('XRANGE', key, ARGV[i], ARGV[i])
  else
    found[#found + 1] = redis.call('XREVRANGE', key, ARGV[i], '-', 'COUNT', 1)
  end
end
return found
"""

_TERM = re.compile(rb"[0-9a-f]{%d}|" % (2 * TERM_BYTES))


class Ride(NamedTuple):
    """A ride as an entry of the log names it."""

    id: int
    term: str


class SeenGroup(NamedTuple):
    """A consumer group as it was seen. Whatever is None is unknown."""

    name: str
    pending: int | None = None
    last_delivered: str | None = None
    first_pending: Ride | None = None
    given: Ride | None = None  # its members were given all rides up to this one
    has_all: bool = False  # its members were given the last entry that there was, and it is gone


def look(log: Log) -> list[SeenGroup]:
    """Look at all groups, and at the entries at which they stand. Raises redis.RedisError.

    However many groups there are, that is three commands.
    """
    last_id = as_numbers(log.last_id())
    states = groups.positions(log)[:MOST_GROUPS]
    first, last = _entries(log, states) if states else ({}, {})
    return [
        SeenGroup(
            at.name.replace("\0", "\N{REPLACEMENT CHARACTER}"),
            at.pending,
            at.last_delivered,
            first.get(at.first_pending),
            _ride(last[at.last_delivered]),
            not last[at.last_delivered] and as_numbers(at.last_delivered) >= last_id,
        )
        for at in states
    ]


def _entries(
    log: Log, states: list[GroupState]
) -> tuple[dict[str | None, Ride | None], dict[str, list[Entry]]]:
    """By id: the rides that are the first to be pending, and the last entries given to anyone."""
    pending = sorted({at.first_pending for at in states if at.first_pending})
    delivered = sorted({at.last_delivered for at in states})
    found = [entries(each) for each in log.run(ENTRIES, len(pending), *pending, *delivered)]
    first = zip(pending, map(_ride, found), strict=False)
    return dict(first), dict(zip(delivered, found[len(pending) :], strict=True))


def _ride(found: list[Entry]) -> Ride | None:
    """The ride of the one entry that was found, if it was found and is one."""
    if not found:
        return None
    try:
        record = decode(found[0].fields)
    except Invalid:
        return None
    return Ride(record.id, record.term.decode()) if _TERM.fullmatch(record.term) else None
