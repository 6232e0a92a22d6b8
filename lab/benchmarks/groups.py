"""The latency of a consumer group, as the documentation of Redis' streams once measured it.

That measurement: 10,000 messages a second, ten members of one group on one stream, on a machine of
two cores with everything on it, COUNT 10,000; from the producer's clock to the member's. This one
repeats it with `rocket_rides.groups`: ten processes that acknowledge what each read gave them. It
runs once with `appendfsync no`, as there, once with `always`, as here, and once with two million
entries pending.
"""

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

from lab.benchmarks import group_load
from lab.benchmarks.figures import Figure, Goal, Table
from lab.benchmarks.group_load import SECOND, Load, Outcome
from lab.benchmarks.stand import Stand
from rocket_rides.log import Log

AS_THERE = Load(rate=10_000, seconds=10, members=10)
MILLION = 1_000_000

# Milliseconds: the buckets of the seed's table, its shares in percent, and where ours go on.
BUCKETS = (0, 1, 2, 3, 4, 5, 10, 100)
THEIRS = {1: "74.11 %", 2: "25.80 %", 3: "0.06 %"}
THEIR_REST = "0.03 % (beyond 3 ms)"


class Variant(NamedTuple):
    """The server's `appendfsync`, so many entries pending before; the goal's milliseconds."""

    fsync: str
    pending: int
    within: int
    goal: Goal

    def __str__(self) -> str:
        pending = f", {self.pending / MILLION:.0f} million pending" if self.pending else ""
        return f"`appendfsync {self.fsync}`{pending}"


AS_FAST = Goal("value", ">=", 99.9)
VARIANTS = (
    Variant("no", 0, 2, AS_FAST),
    Variant("always", 0, 5, Goal("value", ">=", 99)),
    Variant("no", 2 * MILLION, 2, AS_FAST),
)


def measure(stand: Stand) -> list[Figure | Table]:
    """All variants, one after another."""
    outcomes = {str(variant): _run(stand, variant) for variant in VARIANTS}
    figures = [
        figure
        for variant, outcome in zip(VARIANTS, outcomes.values(), strict=True)
        for figure in _figures(variant, outcome)
    ]
    return [*figures, distribution(outcomes)]


def _run(stand: Stand, variant: Variant) -> Outcome:
    stand.say(str(variant))
    with Log(stand.redis.url, group_load.STREAM) as log:
        log.redis.config_set("appendfsync", variant.fsync)
    load = AS_THERE._replace(pending=variant.pending)
    return group_load.run(stand.redis.url, load, stand.folder)


def _figures(variant: Variant, outcome: Outcome) -> list[Figure]:
    name = f"{AS_THERE.rate:,.0f} messages/s, {variant}"
    within = share(outcome, variant.within)
    return [
        Figure(f"{name}: within {variant.within} ms", "%", goal=variant.goal, runs=[within]),
        Figure("not received in the end", "messages", runs=[outcome.left]),
        *(
            Figure(f"processor of the {who}", "% of a core", runs=[100 * spent / outcome.sending])
            for who, spent in outcome.processor.items()
        ),
    ]


def share(outcome: Outcome, milliseconds: float) -> float:
    """The percentage of all messages that arrived within so many milliseconds."""
    arrived = bisect_right(outcome.latencies, milliseconds * SECOND / 1000)
    return 100 * arrived / outcome.sent


def distribution(outcomes: dict[str, Outcome]) -> Table:
    """Which share of the messages took how long: theirs, and that of each outcome."""
    rows = [
        [
            f"{low} to {high} ms",
            THEIRS.get(high, ""),
            *(f"{share(o, high) - share(o, low):.2f} %" for o in outcomes.values()),
        ]
        for low, high in pairwise(BUCKETS)
    ]
    beyond = [f"{100 - share(outcome, BUCKETS[-1]):.2f} %" for outcome in outcomes.values()]
    return Table(["latency", "theirs", *outcomes], [*rows, ["beyond", THEIR_REST, *beyond]])
