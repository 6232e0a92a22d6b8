"""The last fifteen minutes, in memory: what the page's charts are drawn from.

It begins with this process. A moment at which Postgres was away leaves a hole, not a zero.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from watch.facts import Facts

WINDOW = 900.0  # seconds
BUCKET = 5.0  # seconds: one point of a chart; looks come about that often, or more


@dataclass(frozen=True)
class Bucket:
    """What the looks of BUCKET seconds saw: the last count of records, the greatest lags."""

    at: float  # the last look, in seconds by a clock that only rises
    taken: int | None
    lag: float | None  # of the slowest consumer, in seconds
    latency: float | None  # from POST to total, in seconds


@dataclass(frozen=True)
class Point:
    """A point of a chart: its age in seconds, and its value; None is a hole."""

    ago: float
    value: float | None


class History:
    """Buckets of the last WINDOW seconds, by when they begin."""

    def __init__(self) -> None:
        self._buckets: dict[float, Bucket] = {}

    def add(self, facts: Facts, at: float) -> None:
        """Keep what `facts` says; `at` is in seconds by a clock that only rises."""
        begins, seen = at // BUCKET * BUCKET, _seen(facts, at)
        if known := self._buckets.get(begins):
            lag = _greatest((known.lag, seen.lag))
            seen = replace(seen, lag=lag, latency=_greatest((known.latency, seen.latency)))
        self._buckets[begins] = seen
        for old in [each for each in self._buckets if each < begins - WINDOW - BUCKET]:
            del self._buckets[old]

    def rides(self) -> list[Point]:
        """Records per second. A count that fell was restored to an earlier one: a hole."""
        rates: dict[float, float | None] = {}
        for (_, before), (begins, now) in pairwise(self._buckets.items()):
            if before.taken is None or now.taken is None or now.taken < before.taken:
                rates[begins] = None
            else:
                rates[begins] = (now.taken - before.taken) / (now.at - before.at)
        return self._points(rates)

    def lag(self) -> list[Point]:
        """The greatest lag within each bucket, in seconds."""
        return self._points({begins: bucket.lag for begins, bucket in self._buckets.items()})

    def latency(self) -> list[Point]:
        """The greatest time from POST to total within each bucket, in seconds."""
        return self._points({begins: bucket.latency for begins, bucket in self._buckets.items()})

    def _points(self, values: Mapping[float, float | None]) -> list[Point]:
        """The buckets that are complete: a chart changes once in BUCKET seconds."""
        newest = max(self._buckets, default=0.0)
        return [
            Point(newest - begins, value)
            for begins, value in values.items()
            if 0 < newest - begins <= WINDOW
        ]


def _seen(facts: Facts, at: float) -> Bucket:
    database = facts.database
    if database is None:
        return Bucket(at, None, None, None)
    ours = [reader for reader in database.readers if reader.is_own]
    return Bucket(
        at,
        database.rides.taken,
        _greatest(reader.seconds_behind for reader in ours),
        _greatest(reader.latency_seconds for reader in ours if reader.kind == "total"),
    )


def _greatest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
