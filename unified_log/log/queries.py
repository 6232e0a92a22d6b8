"""Queries of the log: a range of it in either direction, of any or of one type, or what is new.

A stream has an index of its ids, so a range of ids or of times costs what it shows. It has none of
positions: they rise, but for double sends, restores of Postgres, and entries of others, which are
what one looks for here. A bisection would pass them by. So a range of positions reads all of the
log, a page at a time, and finds every record that has one of them: a second or two for a million.

Redis builds a page as a whole before it sends any of it, and does not tell beforehand how large it
is. So pages begin with one entry, double while they are not huge, and begin again after one that
is: of entries of 5 MB, Redis builds 20 MB at once. Only where such ones follow a thousand small
ones, which nothing tells beforehand, is the first page of them larger.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from unified_log.log.entries import LARGEST_ID, Entry, Invalid, as_numbers, decode
from unified_log.log.places import GREATEST, SMALLEST, Range, RedisId, after, before
from unified_log.log.stream import Log

PAGE = 1000  # entries
POLL = 1.0  # seconds that a single read waits for a new entry
RARELY = 20.0  # seconds between looks whether the log was wiped, where one moves entries of 20 MB

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Query:
    """What is asked for: `follow` waits for new entries without end, unless there is a `count`."""

    within: Range
    type: bytes | None = None
    count: int | None = None
    reverse: bool = False
    follow: bool = False

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

    Without `follow`, entries that are appended meanwhile are left out.
    """
    left = query.count
    for page in _followed(log, query) if query.follow else _ranged(log, query):
        found = [entry for entry in page if query.takes(entry)][:left]
        if found:
            yield found
        if left is not None and not (left := left - len(found)):
            return


def begins_late(log: Log, within: Range) -> int | None:
    """The log's first position, where the range begins, or lies, below it: Postgres has the rest.

    Raises redis.RedisError.
    """
    position = within.highest if within.lowest is None else within.lowest
    redis_id = within.first or within.last
    for entry in log.between(_text(SMALLEST), _text(GREATEST), 1):
        with suppress(Invalid):
            record = decode(entry.fields)
            is_below = position is not None and position <= record.prev
            if redis_id and redis_id < as_numbers(entry.redis_id):
                is_below = True
            return record.id if record.prev and is_below else None
    return None


def _ranged(log: Log, query: Query) -> Iterator[list[Entry]]:
    first, last = query.within.first or SMALLEST, query.within.last or GREATEST
    if not query.reverse:
        last = min(last, as_numbers(log.last_id()))
    size = 1
    while first <= last:
        page = log.between(_text(first), _text(last), size, newest_first=query.reverse)
        if not page:
            return
        size = _next_size(log, page)
        yield page
        reached = as_numbers(page[-1].redis_id)
        if query.reverse:
            last = before(reached)
        else:
            first = after(reached)


def _followed(log: Log, query: Query) -> Iterator[list[Entry]]:
    """From the range's beginning, if it has one; else only what is new.

    Goes on from the log's own beginning, with a warning, once its ids are lower than before.
    """
    within, last = query.within, as_numbers(log.last_id())
    is_new = within.first is None and within.lowest is None
    at = last if is_new else before(within.first or SMALLEST)
    was_there = at <= last  # else the range begins in the future
    size, look_at = 1, 0.0
    while True:
        if page := log.read(_text(at), size, POLL):
            size, at, was_there = _next_size(log, page), as_numbers(page[-1].redis_id), True
            yield page
            continue
        log.require_primary()
        if was_there and time.monotonic() >= look_at:
            if as_numbers(log.last_id()) < at:  # as in `unified_log/readers/reader.py`
                logger.warning("the log's ids are lower than before: it was wiped, or restored")
                at = SMALLEST
            look_at = time.monotonic() + (RARELY if log.was_cut else 0)


def _next_size(log: Log, page: list[Entry]) -> int:
    """How many entries to ask for after a page that was just read."""
    return 1 if log.was_cut else min(2 * len(page), PAGE)


def _text(redis_id: RedisId) -> str:
    return "{}-{}".format(*redis_id)
