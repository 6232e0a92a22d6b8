"""The latency of a consumer group, as the documentation of Redis' streams once measured it.

That measurement: 10,000 messages a second, ten members of one group on one stream, on a machine of
two cores with everything on it, COUNT 10,000; from the producer's clock to the member's. This one
repeats it with `rocket_rides.groups`: ten processes that acknowledge what each read gave them. It
runs once with `appendfsync no`, as there, once with `always`, as here, and once with two million
entries pending. `python -m benchmarks.groups --help` has options, such as a smaller rate.
"""

import argparse
from bisect import bisect_right

from benchmarks import group_load
from benchmarks.figures import Figure, Goal
from benchmarks.group_load import SECOND, Load, Outcome
from benchmarks.stand import Stand, stand
from rocket_rides.log import Log

AS_THERE = Load(rate=10_000, seconds=60, members=10)
MILLION = 1_000_000

# Milliseconds: the buckets of the seed's table, its shares in percent, and where ours go on.
BUCKETS = (1, 2, 3, 4, 5, 10, 100)
THEIRS = {1: 74.11, 2: 25.80, 3: 0.06}
THEIR_REST = 0.03

# What is asked of a run, by its `appendfsync`: this share (%) within so many milliseconds.
GOALS = {"no": (2, Goal("value", ">=", 99.9)), "always": (5, Goal("value", ">=", 99))}
VARIANTS = {"no": ("no", 0), "always": ("always", 0), "pending": ("no", 2 * MILLION)}


def measure(stand: Stand) -> list[Figure]:
    """All three variants, for a minute each."""
    return run(stand, AS_THERE, list(VARIANTS), 2 * MILLION)


def run(stand: Stand, load: Load, variants: list[str], pending: int) -> list[Figure]:
    """Run these variants, and print a table of each."""
    figures = []
    for variant in variants:
        fsync, hoarded = VARIANTS[variant]
        with Log(stand.redis.url, group_load.STREAM) as log:
            log.redis.config_set("appendfsync", fsync)
        wanted = load._replace(pending=pending if hoarded else 0)
        outcome = group_load.run(stand.redis.url, wanted, stand.folder)
        _print(fsync, wanted, outcome)
        within, goal = GOALS[fsync]
        name = (
            f"Group, {load.rate:,.0f}/s, appendfsync {fsync}, {wanted.pending:,} pending:"
            f" within {within} ms"
        )
        figures.append(Figure(name, "%", goal=goal, runs=[share(outcome, within)]))
    return figures


def share(outcome: Outcome, milliseconds: float) -> float:
    """The percentage of all messages that arrived within so many milliseconds."""
    arrived = bisect_right(outcome.latencies, milliseconds * SECOND / 1000)
    return 100 * arrived / outcome.sent


def _print(fsync: str, load: Load, outcome: Outcome) -> None:
    sent, received = outcome.sent / outcome.sending, outcome.received_in_time / outcome.sending
    lines = [
        f"\n{load.members} members, appendfsync {fsync}, {load.pending:,} pending beforehand:"
        f" {load.rate:,.0f}/s for {load.seconds:.0f} s",
        f"achieved: {sent:,.0f}/s sent, {received:,.0f}/s received",
        f"when the last was sent: {outcome.unread:,} unread, {outcome.pending:,} pending",
        f"left in the end: {outcome.left:,}",
        "processor: "
        + ", ".join(
            f"{who} {100 * spent / outcome.sending:.0f} %"
            for who, spent in outcome.processor.items()
        ),
        "\n| latency | theirs | here |",
        "| --- | --- | --- |",
    ]
    below, low = 0.0, 0
    for high in BUCKETS:
        upto = share(outcome, high)
        theirs = f"{THEIRS[high]:.2f} %" if high in THEIRS else ""
        lines.append(f"| {low} to {high} ms | {theirs} | {upto - below:.2f} % |")
        below, low = upto, high
    lines += [f"| beyond | {THEIR_REST:.2f} % (beyond 3 ms) | {100 - below:.2f} % |", ""]
    for percentile in (50, 99, 99.9, 100):
        lines.append(f"p{percentile:g}: {_percentile(outcome, percentile):.2f} ms")
    print("\n".join(lines), flush=True)


def _percentile(outcome: Outcome, percentile: float) -> float:
    if not outcome.latencies:
        return float("nan")
    place = min(len(outcome.latencies) - 1, int(len(outcome.latencies) * percentile / 100))
    return float(outcome.latencies[place] * 1000 / SECOND)


def main() -> None:
    """Run with options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=", ".join(VARIANTS))
    parser.add_argument("--seconds", type=float, default=AS_THERE.seconds)
    parser.add_argument("--rate", type=float, default=AS_THERE.rate, help="messages per second")
    parser.add_argument("--members", type=int, default=AS_THERE.members)
    parser.add_argument("--pending", type=int, default=2 * MILLION, help="in the variant pending")
    options = parser.parse_args()
    if unknown := set(options.variants) - set(VARIANTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    load = Load(options.rate, options.seconds, options.members)
    with stand() as servers:
        run(servers, load, options.variants or list(VARIANTS), options.pending)


if __name__ == "__main__":
    main()
