"""What the documents of Redis' streams say, measured here: ten consumers of one group, and ranges.

KeyDB's documentation, after Redis', tells of a test: 10,000 entries a second are appended to one
stream by programs in Ruby, and ten consumers of one group read them with COUNT 10000 and
acknowledge them, all on a small machine of two cores with the server. This repeats it in Python
with ten processes (threads would wait for each other's interpreter), once by our group reader and
once, as its limit, by redis-py alone; then with a million entries pending of a consumer that is
gone, and, as the fleet runs, with each append and each delivery on disk before its answer. As the
published programs did, it counts from when an entry was sent; one figure, from when it was due.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from itertools import chain, pairwise
from operator import attrgetter
from typing import NamedTuple

import redis

from lab.benchmarks import group_load, members, ranges
from lab.benchmarks.figures import Figure, Goal, Table
from lab.benchmarks.members import Run, Spent
from lab.benchmarks.stand import Stand
from lab.progress import say

ROUNDS = 4  # an even number, so that each reader is first as often
MILLION = 1_000_000
MICROSECOND, MILLISECOND = 1_000, 1_000_000  # nanoseconds
# Percent of the entries, by whole milliseconds; the last is of all later ones.
PUBLISHED = (74.11, 25.80, 0.06, 0.01, 0.02, 0.0)
LAST = len(PUBLISHED) - 1
BARE = "redis-py"


class Variant(NamedTuple):
    name: str
    appendonly: str  # the server's
    pending: int  # entries, before a run


class Runs(NamedTuple):
    ours: list[Run]
    bare: list[Run]  # by redis-py, each beside one of ours


AS_THERE = Variant("memory", "no", 0)
VARIANTS = (AS_THERE, Variant("pending", "no", MILLION), Variant("disk", "yes", 0))
GOAL = Goal("value", "<=", 2)  # milliseconds, for 99.9 % of the entries, as published


def measure(stand: Stand) -> Sequence[Figure | Table]:
    with group_load.processes() as pool:
        # On disk first: a server that begins to write a file writes all that it has.
        runs = {each: _runs(stand, pool, each) for each in reversed(VARIANTS)}
    return [
        _latest("99.9 % of entries", attrgetter("from_sent"), runs[AS_THERE], GOAL),
        _latest("The same, from when due", attrgetter("from_due"), runs[AS_THERE]),
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
    turns = [(members.ours, runs.ours), (members.bare, runs.bare)]
    for _ in range(ROUNDS):
        for reader, kept in turns:
            kept.append(group_load.run(pool, url, server, reader))
        turns.reverse()  # the first of a pair may find the server cold
    return runs


def _latest(
    name: str, of: Callable[[Run], Sequence[int]], runs: Runs, goal: Goal | None = None
) -> Figure:
    late = [[of(run)[len(of(run)) * 999 // 1000] / MILLISECOND for run in each] for each in runs]
    return Figure(name, "ms", BARE, goal, *late)


def _cost(name: str, of: Callable[[Spent], int], runs: Runs) -> Figure:
    """What an entry costs the server, its producer and its consumer together."""
    costs = [[of(run.spent) / len(run.from_sent) / MICROSECOND for run in each] for each in runs]
    return Figure(name, "µs", BARE, None, *costs)


def distribution(outcomes: Mapping[str, Runs]) -> Table:
    """The share of the entries of all runs by whole milliseconds, beside the published ones."""
    columns = ["ms", "published"]
    shown: list[Sequence[float]] = [PUBLISHED]
    for name, runs in outcomes.items():
        columns += [f"{name}: {BARE}", f"{name}: ours"]
        shown += [shares(runs.bare), shares(runs.ours)]
    spans = [*(f"{low}-{high}" for low, high in pairwise(range(LAST + 1))), f"over {LAST}"]
    cells = ([f"{share:.2f} %" for share in row] for row in zip(*shown, strict=True))
    return Table(columns, [[span, *row] for span, row in zip(spans, cells, strict=True)])


def shares(runs: Sequence[Run]) -> list[float]:
    """Percent of all runs' entries, taken together, by whole milliseconds; the last took longer."""
    took = sorted(chain.from_iterable(run.from_sent for run in runs))
    by = [bisect_left(took, below * MILLISECOND) for below in range(LAST + 1)]
    counts = [high - low for low, high in pairwise([*by, len(took)])]
    return [100 * count / len(took) for count in counts]
