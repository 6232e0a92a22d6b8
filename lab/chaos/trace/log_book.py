"""The log as the onlooker saw it, and when it may have lost entries, or hidden some from it."""

import json
from bisect import bisect_right
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from lab.chaos.observer import Told
from lab.chaos.trace.recording import Struck
from lab.chaos.trace.replica import as_number, millimetres, position
from lab.chaos.trace.specified import Entry, Ride

UNREAD = 2.0  # seconds after a fault during which its effects may show


class Seen(NamedTuple):
    entry: Entry
    at: float
    before: int  # how many had been seen before


class LogBook:
    """`longest`: how many entries the log keeps at most, even for readers that are behind."""

    def __init__(self, told: Iterable[Told], losses: Iterable[Struck], longest: int) -> None:
        self._longest = longest
        self._losses = [*losses]
        self._of_ride: dict[tuple[int, int], list[Seen]] = {}
        self._times: list[float] = []
        seen = []
        for before, each in enumerate(told):
            seen.append(Seen(as_entry(each), each.at, before))
            self._times.append(each.at)
            ride = seen[-1].entry.ride
            self._of_ride.setdefault((seen[-1].entry.term, ride.id), []).append(seen[-1])
        self._seen = sorted(seen, key=lambda one: one.entry.redis_id)
        self._ids = [one.entry.redis_id for one in self._seen]

    def between(self, after: int, upto: int, by: float) -> list[Seen]:
        """The entries after one position, up to another, that were seen by a moment.

        Later entries may have lower ids: where a clock was ahead, and the log was lost.
        """
        first, last = bisect_right(self._ids, after), bisect_right(self._ids, upto)
        return [one for one in self._seen[first:last] if one.at <= by + UNREAD]

    def about(self, term: int, ride: Ride, prev: int) -> list[Seen]:
        """The entries of a ride under a term: those that agree with `prev`; if none does, all.

        After a restore that undid the term, others may have written under the same number.
        """
        told = self._of_ride.get((term, ride.id), [])
        return [one for one in told if (one.entry.ride, one.entry.prev) == (ride, prev)] or told

    def may_differ(self, read: list[Seen], since: float, by: float) -> bool:
        """Whether a reader may have read other entries than `read`, which the onlooker saw.

        A fault between the two moments may have taken entries from the log, or hidden some from the
        onlooker; so may one by which an entry was seen: what came after it may have the ids of what
        was lost. Or the log may have been trimmed to its longest.
        """
        times = [one.at for one in read]
        since, until = min([since, *times]), max([by, *times])
        first = min((one.before for one in read), default=len(self._times))
        later = bisect_right(self._times, by + UNREAD) - first
        return later > self._longest or any(
            loss.began <= until and since <= loss.ended + UNREAD for loss in self._losses
        )


def as_entry(told: Told) -> Entry:
    """Records of other kinds than rides have no distance."""
    record = told.record
    try:
        distance = json.loads(record.data, parse_float=Decimal).get("distance")
    except (ValueError, AttributeError):  # whoever wrote it
        distance = None
    ride = Ride(record.id, millimetres(distance))
    return Entry(position(told.redis_id), ride, record.prev, as_number(record.term))
