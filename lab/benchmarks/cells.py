"""Two cells with a core each, compared with one of them alone; and what the router costs.

Linux only. A cell's servers, services, load and receiver are all pinned to the cell's core, so both
share only memory, caches, and the disk, which can't be pinned: so this is also measured with the
data in memory. A run lasts until each of its rides is counted and has its receipt, so that no work
is put off. The router is measured in front of one API, unpinned.
"""

import contextlib
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import psutil

from demo.embedded.welcome import answers
from lab.balancer import BEFORE_CELLS, HAPROXY
from lab.benchmarks import load
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.fleet import counted, fleet
from lab.benchmarks.idle import seconds_used
from lab.benchmarks.receipts import DELIVERED
from lab.benchmarks.stand import HOST, Stand, running, stand, value
from lab.ports import free_ports
from lab.processes import clean_environment
from lab.until import until
from rocket_rides.settings import PROJECT
from unified_log import database

CLIENTS = 8
SECONDS = 4
ROUNDS = 6
RIDES = "SELECT count(*) FROM rides"
LAST = "SELECT max(id) FROM rides"
IN_MEMORY = Path("/dev/shm")  # noqa: S108


def measure(stand: Stand) -> list[Figure]:
    one_disk = side_by_side("one disk", None)
    return [one_disk, side_by_side("in memory", IN_MEMORY), *through_the_router(stand)]


def side_by_side(where: str, parent: Path | None) -> Figure:
    name, goal = f"Rides, two cells, a core each, {where}", Goal("ratio", ">=", 1.9)
    figure = Figure(name, "rides/s", "one of them alone", goal)
    with _cell(0, parent) as first, _cell(1, parent) as second:
        either = cycle([first, second])

        def both() -> float:
            return sum(rate.result() for rate in [first.run(), second.run()])

        return figure.measure(ROUNDS, both, lambda: next(either).run().result())


def through_the_router(stand: Stand) -> list[Figure]:
    """Rides with a key: the router computes the key's slot, and looks up its cell."""
    rides = Figure("POST /rides through the router", "requests/s", "directly")
    cost = Figure("router's processor time, a request", "µs", "API's and Postgres'")
    postgres = psutil.Process(stand.postgres.pid)
    with (
        stand.connect() as connection,
        stand.api() as (port, api),
        _router(stand, port) as (router_port, router),
    ):

        def routed() -> float:
            taken = -value(connection, RIDES)
            before = seconds_used(router), seconds_used(api) + seconds_used(postgres)
            rate = load.rate(router_port, load.rides_with_keys(), CLIENTS, SECONDS)
            after = seconds_used(router), seconds_used(api) + seconds_used(postgres)
            taken += value(connection, RIDES)
            cost.runs.append(1e6 * (after[0] - before[0]) / taken)
            cost.limits.append(1e6 * (after[1] - before[1]) / taken)
            return rate

        def directly() -> float:
            return load.rate(port, load.rides_with_keys(), CLIENTS, SECONDS)

        rides.measure(ROUNDS, routed, directly)
    return [rides, cost]


class _Cell(NamedTuple):
    """A fleet on a core of its own, and a process on the same core that can load it."""

    port: int
    database_url: str
    clients: Executor

    def run(self) -> Future[float]:
        """Begin; the result is `rides_done`."""
        return self.clients.submit(rides_done, self.port, self.database_url)


def rides_done(port: int, database_url: str) -> float:
    """How many rides a second a cell takes, counts and delivers the receipts of."""
    with database.connect(database_url, "benchmark") as connection:
        before, started = value(connection, RIDES), time.perf_counter()
        load.rate(port, load.RIDES, CLIENTS, SECONDS)
        taken, last = value(connection, RIDES), value(connection, LAST)
        late = "not every ride is counted and has its receipt"
        until(lambda: value(connection, DELIVERED) >= taken and counted(connection) >= last, late)
        return (taken - before) / (time.perf_counter() - started)


@contextlib.contextmanager
def _cell(number: int, parent: Path | None) -> Iterator[_Cell]:
    with contextlib.ExitStack() as exits:
        with _on_core(number):
            servers = exits.enter_context(stand(number, parent))
            port, _ = exits.enter_context(fleet(servers))
            clients = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
            exits.enter_context(clients)
            clients.submit(os.getpid).result()  # it starts its process only now
        yield _Cell(port, servers.postgres.url, clients)


@contextlib.contextmanager
def _on_core(number: int) -> Iterator[None]:
    """What is started in the block stays on this core: a process inherits that."""
    before = os.sched_getaffinity(0)
    if number >= len(before):
        raise RuntimeError("two cells with a core each need two cores")
    os.sched_setaffinity(0, {sorted(before)[number]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def _router(stand: Stand, port: int) -> Iterator[tuple[int, psutil.Process]]:
    if HAPROXY is None:
        raise RuntimeError("there is no haproxy here")
    own_port, folder = free_ports(), stand.folder
    settings = {
        "ROUTER": f"{HOST}:{own_port}",
        "ROUTER_SOCKET": str(folder / "router"),
        "ROUTER_MAP": str(BEFORE_CELLS.with_name("slots.map")),
        "CELL_0": f"{HOST}:{port}",
        "CELL_1": f"{HOST}:{port}",
    }
    command = [HAPROXY, "-q", "-db", "-f", str(BEFORE_CELLS)]
    environment = clean_environment() | settings
    with running(command, PROJECT, folder / "router.log", environment) as process:
        until(lambda: answers(f"{HOST}:{own_port}", "/readyz"), "the router does not get ready")
        yield own_port, process
