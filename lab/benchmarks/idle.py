"""What an idle fleet costs in processor time, including its servers. Linux only.

The limit is one process that asks as often for nothing: waking up costs more on one host than on
another.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial

import psutil
import psycopg

from lab.benchmarks import fleet
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand
from lab.until import until

ROUNDS = 3
SECONDS = 10
COMMANDS = 50  # a second: what the fleet sends, as tests/services/test_round_trips.py counts it
STARTING = 25  # percent of a core: a service takes more than that while it starts


def measure(stand: Stand) -> list[Figure]:
    limit = f"{COMMANDS} `SELECT 1` a second"
    figure = Figure("Idle fleet, all processes", "% of a core", limit, Goal("value", "<=", 2))
    servers = [psutil.Process(server.pid) for server in (stand.postgres, stand.redis)]
    with fleet.fleet(stand) as (_, services), stand.connect() as connection:
        roots = [*servers, *services]
        until(lambda: _used_in(roots, 0.5) < STARTING, "the fleet does not become idle")
        return [
            figure.measure(ROUNDS, partial(_used_in, roots, SECONDS), partial(_bare, connection))
        ]


def _bare(connection: psycopg.Connection) -> float:
    """The share of a core that this process and its backend take for so many commands."""
    backend = psutil.Process(connection.info.backend_pid)

    def ask() -> None:
        for _ in range(SECONDS * COMMANDS):
            time.sleep(1 / COMMANDS)
            connection.execute("SELECT 1")

    return _share(lambda: time.process_time() + seconds_used(backend), ask)


def _used_in(roots: Sequence[psutil.Process], seconds: float) -> float:
    """The share of a core that these process trees take, in percent."""
    return _share(lambda: sum(map(seconds_used, roots)), partial(time.sleep, seconds))


def _share(used: Callable[[], float], work: Callable[[], object]) -> float:
    """The share of a core that is used during some work, in percent."""
    before, started = used(), time.perf_counter()
    work()
    passed = time.perf_counter() - started
    return 100 * (used() - before) / passed


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
