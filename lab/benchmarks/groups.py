"""What the documents of Redis' streams say, measured here: ten consumers of one group, and ranges.

KeyDB's documentation, after Redis', tells of a test: 10,000 entries a second are appended to one
stream by programs in Ruby, and ten consumers of one group read them with COUNT 10000 and
acknowledge them, all on a small machine of two cores with the server. This repeats it in Python
with ten processes, once by our group reader and once, as its limit, by redis-py alone. They are
processes, as there: as threads, they would wait for each other's interpreter.

It is repeated with a million entries pending under the name of a consumer that is gone, and, as the
fleet runs, with each append and each delivery on disk before its answer. The published test does
not say what its server wrote; Redis as it comes writes no append-only file.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import NamedTuple

import redis

from lab.benchmarks import group_load, members, ranges
from lab.benchmarks.figures import Figure, Goal, Table
from lab.benchmarks.group_load import ENTRIES
from lab.benchmarks.members import Run, Spent
from lab.benchmarks.stand import Stand, say

ROUNDS = 3
MILLION = 1_000_000
MICROSECOND, MILLISECOND = 1_000, 1_000_000  # nanoseconds
# Percent of the entries, by whole milliseconds; the last is of all later ones.
PUBLISHED = (74.11, 25.80, 0.06, 0.01, 0.02, 0.0)
LAST = len(PUBLISHED) - 1
BARE = "redis-py"


class Variant(NamedTuple):
    """The server's `appendonly`, and so many entries pending before a run."""

    name: str
    appendonly: str
    pending: int


class Runs(NamedTuple):
    """By our reader and by redis-py, in turns."""

    ours: list[Run]
    bare: list[Run]


AS_THERE = Variant("memory", "no", 0)
VARIANTS = (AS_THERE, Variant("pending", "no", MILLION), Variant("disk", "yes", 0))
GOAL = Goal("value", "<=", 2)  # milliseconds, for 99.9 % of the entries, as published


def measure(stand: Stand) -> Sequence[Figure | Table]:
    """All variants; then ranges in long streams."""
    with group_load.processes() as pool:
        # On disk first: a server that begins to write a file writes all that it has.
        runs = {each: _runs(stand, pool, each) for each in reversed(VARIANTS)}
    return [
        _latest(runs[AS_THERE]),
        _cost("Processor time of an entry", attrgetter("ran"), runs[AS_THERE]),
        _cost("Its waiting for a core", attrgetter("waited"), runs[AS_THERE]),
        *ranges.measure(stand),
        distribution({each.name: runs[each] for each in VARIANTS}),
    ]


def _runs(stand: Stand, pool: Executor, variant: Variant) -> Runs:
    say(f"groups: {variant.name}")
    url, server, runs = stand.redis.url, stand.redis.pid, Runs([], [])
    with redis.Redis.from_url(url) as client:
        client.config_set("appendonly", variant.appendonly)
    group_load.prepare(url, variant.pending)
    for _ in range(ROUNDS):
        runs.ours.append(group_load.run(pool, url, server, members.ours))
        runs.bare.append(group_load.run(pool, url, server, members.bare))
    return runs


def _latest(runs: Runs) -> Figure:
    """How late the last of the earliest 99.9 % came."""
    late = [[run.took[ENTRIES * 999 // 1000] / MILLISECOND for run in each] for each in runs]
    return Figure("99.9 % of entries", "ms", BARE, GOAL, *late)


def _cost(name: str, of: Callable[[Spent], int], runs: Runs) -> Figure:
    """What an entry costs the server, its producer and its consumer together."""
    costs = [[of(run.spent) / ENTRIES / MICROSECOND for run in each] for each in runs]
    return Figure(name, "µs", BARE, None, *costs)


def distribution(outcomes: Mapping[str, Runs]) -> Table:
    """The share of the entries by whole milliseconds, beside the published ones."""
    columns = ["ms", "published"]
    shown: list[Sequence[float]] = [PUBLISHED]
    for name, runs in outcomes.items():
        columns += [f"{name}: {BARE}", "ours"]
        shown += [medians(runs.bare), medians(runs.ours)]
    spans = [*(f"{low}-{high}" for low, high in pairwise(range(LAST + 1))), f"over {LAST}"]
    cells = ([f"{share:.2f} %" for share in row] for row in zip(*shown, strict=True))
    return Table(columns, [[span, *row] for span, row in zip(spans, cells, strict=True)])


def medians(runs: Sequence[Run]) -> tuple[float, ...]:
    return tuple(median(each) for each in zip(*map(shares, runs), strict=True))


def shares(run: Run) -> list[float]:
    """Percent of the entries by whole milliseconds from 0 to 1 on, and of all that took longer."""
    by = [bisect_left(run.took, below * MILLISECOND) for below in range(LAST + 1)]
    counts = [high - low for low, high in pairwise([*by, len(run.took)])]
    return [100 * count / len(run.took) for count in counts]
