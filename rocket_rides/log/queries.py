"""Queries of the log: a range of it in either direction, of any or of one type, or what is new.

A stream has an index of its ids, so a range of ids or of times costs what it shows. It has none of
positions: they rise, but for double sends, restores of Postgres, and entries of others, which are
what one looks for here. A bisection would pass them by. So a range of positions reads all of the
log, a page at a time, and finds every record that has one of them: a second or two for a million.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rocket_rides.log.entries import LARGEST_ID, Entry, Invalid, as_numbers, decode
from rocket_rides.log.places import GREATEST, SMALLEST, Range, RedisId, after, before
from rocket_rides.log.stream import Log

PAGE = 1000  # entries
POLL = 1.0  # seconds that a single read waits for a new entry


@dataclass(frozen=True)
class Query:
    """What is asked for: `follow` waits for new entries without end, unless there is a `count`."""

    within: Range
    type: bytes | None = None
    count: int | None = None
    reverse: bool = False
    follow: bool = False

    @property
    def most_at_once(self) -> int:
        """How many entries to ask for: no more than are wanted, where each is."""
        return min(PAGE, self.count or PAGE) if self.takes_all else PAGE

    @property
    def takes_all(self) -> bool:
        """Whether every entry within the range of ids is wanted, also one that is no record."""
        positions = self.within.lowest, self.within.highest
        return self.type is None and positions == (None, None)

    def takes(self, entry: Entry) -> bool:
        """Whether an entry within the range of ids is wanted."""
        if self.takes_all:
            return True
        try:
            record = decode(entry.fields)
        except Invalid:
            return False
        if self.type is not None and self.type != record.type:
            return False
        lowest, highest = self.within.lowest or 0, self.within.highest
        return lowest <= record.id <= (LARGEST_ID if highest is None else highest)


def selected(log: Log, query: Query) -> Iterator[list[Entry]]:
    """The entries that are asked for, in order, in pages. Raises redis.RedisError.

    Without `follow`, entries that are appended meanwhile are left out, or nearly all of them.
    """
    left = query.count
    for page in _followed(log, query) if query.follow else _ranged(log, query):
        found = [entry for entry in page if query.takes(entry)][:left]
        if found:
            yield found
        if left is not None and not (left := left - len(found)):
            return


def _ranged(log: Log, query: Query) -> Iterator[list[Entry]]:
    first, last = query.within.first or SMALLEST, query.within.last or GREATEST
    if not query.reverse:
        last = min(last, as_numbers(log.last_id()))
    while first <= last:
        page = log.between(
            _text(first), _text(last), query.most_at_once, newest_first=query.reverse
        )
        if not page:
            return
        yield page
        reached = as_numbers(page[-1].redis_id)
        if query.reverse:
            last = before(reached)
        else:
            first = after(reached)


def _followed(log: Log, query: Query) -> Iterator[list[Entry]]:
    """From the range's beginning, if it has one; else only what is new."""
    within = query.within
    is_new = within.first is None and within.lowest is None
    at = log.last_id() if is_new else _text(before(within.first or SMALLEST))
    while True:
        if page := log.read(at, query.most_at_once, POLL):
            yield page
            at = page[-1].redis_id


def _text(redis_id: RedisId) -> str:
    return "{}-{}".format(*redis_id)
