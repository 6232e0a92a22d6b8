"""What an idle fleet costs in processor time, including its servers. Linux only."""

import contextlib
import time
from collections.abc import Sequence

import psutil

from lab.benchmarks import fleet
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand
from lab.until import until

ROUNDS = 3
SECONDS = 10


def measure(stand: Stand) -> list[Figure]:
    figure = Figure("Idle fleet, all processes", "% of a core", goal=Goal("value", "<=", 2))
    servers = [psutil.Process(server.pid) for server in (stand.postgres, stand.redis)]
    with fleet.fleet(stand) as (_, services):
        roots = [*servers, *services]
        until(lambda: _used_in(roots, 0.5) < 10, "the fleet does not become idle")
        return [figure.measure(ROUNDS, lambda: _used_in(roots, SECONDS))]


def _used_in(roots: Sequence[psutil.Process], seconds: float) -> float:
    """The share of a core that these process trees take, in percent."""
    before, started = sum(map(seconds_used, roots)), time.perf_counter()
    time.sleep(seconds)
    passed = time.perf_counter() - started
    return 100 * (sum(map(seconds_used, roots)) - before) / passed


def seconds_used(root: psutil.Process) -> float:
    """Processor time of a process and its children, including those that have ended."""
    used = 0.0
    for child in root.children(recursive=True):
        # A process that ended meanwhile counts among its parent's ended children.
        with contextlib.suppress(psutil.NoSuchProcess):
            own = child.cpu_times()
            used += own.user + own.system
    own = root.cpu_times()
    return float(used + own.user + own.system + own.children_user + own.children_system)
