"""The last fifteen minutes, in memory: what the page's charts are drawn from.

It begins with this process. A moment at which a server was away leaves a hole, not a zero.
"""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

from watch.facts import Database, Facts

WINDOW = 900.0  # seconds
BUCKET = 5.0  # seconds: one point of a chart; a look comes at least that often


@dataclass(frozen=True)
class Sample:
    """What one look saw. Lags are those of the slowest reader of ours, in seconds."""

    at: float  # seconds by a clock that only rises
    taken: int | None
    lag: float | None
    latency: float | None


@dataclass(frozen=True)
class Point:
    """A point of a chart: its age in seconds, and its value; None is a hole."""

    ago: float
    value: float | None


class History:
    """Samples of the last WINDOW seconds."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()

    def add(self, facts: Facts, at: float) -> None:
        """Keep what `facts` says; `at` is in seconds by a clock that only rises."""
        sample = _sample(facts, at)
        self._samples.append(sample)
        while self._samples[0].at < sample.at - WINDOW - 2 * BUCKET:
            self._samples.popleft()

    def rides(self) -> list[Point]:
        """Rides per second. A count that fell was restored to an earlier one: a hole."""
        rates: list[tuple[float, float | None]] = []
        by_bucket = list(_last_of_each(self._samples))
        for before, now in pairwise(by_bucket):
            if before.taken is None or now.taken is None or now.taken < before.taken:
                rates.append((now.at, None))
            else:
                rates.append((now.at, (now.taken - before.taken) / (now.at - before.at)))
        return self._points(rates)

    def lag(self) -> list[Point]:
        """The greatest lag within each bucket, in seconds."""
        return self._greatest([(sample.at, sample.lag) for sample in self._samples])

    def latency(self) -> list[Point]:
        """The greatest time from POST to total within each bucket, in seconds."""
        return self._greatest([(sample.at, sample.latency) for sample in self._samples])

    def _greatest(self, values: list[tuple[float, float | None]]) -> list[Point]:
        greatest: dict[float, float | None] = {}
        for at, value in values:
            bucket = at // BUCKET * BUCKET
            known = greatest.get(bucket)
            both = [each for each in (known, value) if each is not None]
            greatest[bucket] = max(both, default=None)
        return self._points(list(greatest.items()))

    def _points(self, values: list[tuple[float, float | None]]) -> list[Point]:
        """The buckets that are complete: a chart changes once in BUCKET seconds."""
        if not self._samples:
            return []
        ends = self._samples[-1].at // BUCKET * BUCKET
        return [
            Point(ends - at // BUCKET * BUCKET, value)
            for at, value in values
            if 0 < ends - at // BUCKET * BUCKET <= WINDOW
        ]


def _last_of_each(samples: "deque[Sample]") -> list[Sample]:
    return list({sample.at // BUCKET: sample for sample in samples}.values())


def _sample(facts: Facts, at: float) -> Sample:
    database = facts.database
    if database is None:
        return Sample(at, None, None, None)
    return Sample(
        at,
        database.rides.taken,
        max((lag for lag in _lags(database) if lag is not None), default=None),
        max((lag for lag in _latencies(database) if lag is not None), default=None),
    )


def _lags(database: Database) -> list[float | None]:
    """Of the totals and the rollup. A receipt may be late because its receiver is."""
    return [
        reader.seconds_behind
        for reader in database.readers
        if reader.kind in ("total", "rollup") and reader.is_ours
    ]


def _latencies(database: Database) -> list[float | None]:
    return [reader.latency_seconds for reader in database.readers if reader.kind == "total"]
