"""What an idle fleet costs in processor time, including its servers. Linux only.

The rollup and the receipts' workers are started and stopped again in each round, so that what they
cost the servers and the streamer as well is seen: the difference from the same fleet without them.
"""

import time
from collections.abc import Iterable

import psutil

from lab.benchmarks import fleet
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.receiver import receiver
from lab.benchmarks.stand import Stand, seconds_used, wait_until

ROUNDS = 3
SECONDS = 10
CPU_GOAL = Goal("value", "<=", 2)
MORE_GOAL = Goal("value", "<=", 1)

Processes = dict[str, psutil.Process]


def measure(stand: Stand) -> list[Figure]:
    """Processor time of process trees over some seconds."""
    total = Figure("Idle fleet, all processes", "% of a core", goal=CPU_GOAL)
    without = Figure("Idle fleet without rollup and receipts", "% of a core")
    more = Figure("Idle rollup and receipts, all they cause", "% of a core", goal=MORE_GOAL)
    each: dict[str, Figure] = {}
    with receiver() as customer, fleet.totals(stand) as (_, services):
        roots = services | {
            "Postgres": psutil.Process(stand.postgres.pid),
            "Redis": psutil.Process(stand.redis.pid),
        }
        for _ in range(ROUNDS):
            without.runs.append(sum(_processor(roots).values()))
            with fleet.rollup(stand) as marker, fleet.workers(stand, customer) as members:
                everything = {**roots, **marker, **members}
                usage = _processor(everything)
            for name, percent in usage.items():
                each.setdefault(name, Figure(f"Idle {name}", "% of a core")).runs.append(percent)
            total.runs.append(sum(usage.values()))
            more.runs.append(total.runs[-1] - without.runs[-1])
    return [total, without, more, *each.values()]


def _processor(roots: Processes) -> dict[str, float]:
    """The share of a core that each process tree takes once it is quiet, in percent."""
    wait_until(lambda: _is_quiet(roots.values()), "the fleet is idle")
    before = {name: seconds_used(root) for name, root in roots.items()}
    started = time.perf_counter()
    time.sleep(SECONDS)
    passed = time.perf_counter() - started
    return {
        name: 100 * (seconds_used(root) - before[name]) / passed for name, root in roots.items()
    }


def _is_quiet(roots: Iterable[psutil.Process]) -> bool:
    """Whether starting up is over: less than a tenth of a core for half a second."""
    roots = list(roots)
    before = sum(map(seconds_used, roots))
    time.sleep(0.5)
    return sum(map(seconds_used, roots)) - before < 0.05
