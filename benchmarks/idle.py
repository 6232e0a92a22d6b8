"""What an idle fleet costs in processor time and memory, including its servers. Linux only."""

import time
from collections.abc import Iterable

import psutil

from benchmarks import fleet
from benchmarks.figures import Figure, Goal
from benchmarks.stand import Stand, wait_until

ROUNDS = 3
SECONDS = 5
MEGABYTE = 1e6
CPU_GOAL = Goal("value", "<=", 3)
MEMORY_GOAL = Goal("value", "<=", 80)


def measure(stand: Stand) -> list[Figure]:
    """Processor time of process trees over some seconds; memory of each one's largest process."""
    with fleet.fleet(stand) as running:
        roots = running.services | {
            "Postgres": psutil.Process(stand.postgres.pid),
            "Redis": psutil.Process(stand.redis.pid),
        }
        wait_until(lambda: _is_quiet(roots.values()), "the fleet is idle")
        return [*_processor(roots), *_memory(roots)]


def _processor(roots: dict[str, psutil.Process]) -> list[Figure]:
    total = Figure("Idle fleet, all processes", "% of a core", goal=CPU_GOAL)
    each = {name: Figure(f"Idle {name}", "% of a core") for name in roots}
    for _ in range(ROUNDS):
        before = {name: _seconds_used(root) for name, root in roots.items()}
        started = time.perf_counter()
        time.sleep(SECONDS)
        after = {name: _seconds_used(root) for name, root in roots.items()}
        passed = time.perf_counter() - started
        for name, figure in each.items():
            figure.runs.append(100 * (after[name] - before[name]) / passed)
        total.runs.append(sum(figure.runs[-1] for figure in each.values()))
    return [total, *each.values()]


def _memory(roots: dict[str, psutil.Process]) -> list[Figure]:
    """For each process tree, the largest process: by PSS (its share of memory) and by RSS."""
    figures = []
    for name, root in roots.items():
        usage = [process.memory_full_info() for process in _tree(root)]
        pss = [info.pss / MEGABYTE for info in usage]
        largest = (
            f"Memory of {name}, largest of {len(usage)}" if len(usage) > 1 else f"Memory of {name}"
        )
        figures += [
            Figure(f"{largest}, PSS", "MB", goal=MEMORY_GOAL, runs=[max(pss)]),
            Figure(f"{largest}, RSS", "MB", runs=[max(info.rss / MEGABYTE for info in usage)]),
        ]
    return figures


def _tree(root: psutil.Process) -> list[psutil.Process]:
    return [root, *root.children(recursive=True)]


def _seconds_used(root: psutil.Process) -> float:
    """By the whole tree, including children that have ended and been waited for."""
    times = [process.cpu_times() for process in _tree(root)]
    ended = times[0].children_user + times[0].children_system
    return ended + sum(time.user + time.system for time in times)


def _is_quiet(roots: Iterable[psutil.Process]) -> bool:
    """Whether starting up is over: less than a tenth of a core for half a second."""
    roots = list(roots)
    before = sum(map(_seconds_used, roots))
    time.sleep(0.5)
    return sum(map(_seconds_used, roots)) - before < 0.05
