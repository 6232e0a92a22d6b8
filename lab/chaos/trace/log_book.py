"""The log's entries as the onlooker saw them, and when some may have been lost, or gone unseen."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from lab.chaos.observer import Told
from lab.chaos.trace.recording import Loss
from lab.chaos.trace.rows import as_number, millimetres, position
from lab.chaos.trace.specified import Entry, Ride

UNREAD = 2.0  # seconds after a fault in which its effects may show


class Seen(NamedTuple):
    """An entry, when it was seen, and how many had been seen before."""

    entry: Entry
    at: float
    before: int


class LogBook:
    """`longest`: the entries that the log keeps, whoever has not read them."""

    def __init__(self, told: Iterable[Told], losses: Iterable[Loss], longest: int) -> None:
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
        """What lay behind one position, up to another, by a moment.

        Entries that come later have lower ids where a clock was ahead, and the log is lost.
        """
        first, last = bisect_right(self._ids, after), bisect_right(self._ids, upto)
        return [one for one in self._seen[first:last] if one.at <= by + UNREAD]

    def about(self, term: int, ride: Ride, prev: int) -> list[Seen]:
        """What a term's leader has said of a ride: that it follows `prev`, if it ever said so.

        Others may have written under the same term once a restore has taken it back.
        """
        told = self._of_ride.get((term, ride.id), [])
        return [one for one in told if (one.entry.ride, one.entry.prev) == (ride, prev)] or told

    def losses(self, read: list[Seen], since: float, by: float) -> int:
        """How often a reader, from one moment to another, may have come to find less than this.

        Or more: the log may have lost some, or have been trimmed to its longest; or a fault has
        hidden some from the onlooker.
        """
        since = min([since, *(one.at for one in read)])
        first = min((one.before for one in read), default=len(self._times))
        later = bisect_right(self._times, by + UNREAD) - first
        faults = sum(loss.began <= by and since <= loss.ended + UNREAD for loss in self._losses)
        return faults + (later > self._longest)


def as_entry(told: Told) -> Entry:
    record = told.record
    ride = Ride(record.id, millimetres(record.distance))
    return Entry(position(told.redis_id), ride, record.prev, as_number(record.term))
