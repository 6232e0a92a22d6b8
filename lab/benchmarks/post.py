"""POST /rides per second, compared with pgbench's same transaction in the same database."""

import time

import psutil

from lab.benchmarks import load, pgbench
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand, seconds_used

ROUNDS = {1: 3, 8: 4, 32: 2}  # by the number of clients
SECONDS = 2
UNIT = "requests/s"
FOUR_GOAL = Goal("ratio", ">=", 0.5)
ONE_GOAL = Goal("ratio", ">=", 0.35)
KEYS_GOAL = Goal("ratio", ">=", 0.8)


def measure(stand: Stand) -> list[Figure]:
    """The API and pgbench take turns, so that a machine that slows down slows both."""
    figures = []
    with stand.api() as (port, api):
        for clients in ROUNDS:
            figures += _against_pgbench(stand, port, clients)
        figures += _with_keys(port)
        figures += _processor_time(
            port, {"API": api, "Postgres": psutil.Process(stand.postgres.pid)}
        )
    return figures


def _against_pgbench(stand: Stand, port: int, clients: int) -> list[Figure]:
    name = f"`POST /rides`, {clients} client{'s' if clients > 1 else ''}"
    of_interest = clients == 8
    four = Figure(
        name,
        UNIT,
        "pgbench, `BEGIN; INSERT; INSERT; COMMIT`",
        FOUR_GOAL if of_interest else None,
        headline=of_interest,
    )
    one = Figure(name, UNIT, "pgbench, the API's statement", ONE_GOAL if of_interest else None)
    for _ in range(ROUNDS[clients]):
        rides = load.rate(port, load.RIDES, clients, SECONDS)
        one.runs.append(rides)
        four.runs.append(rides)
        one.limits.append(pgbench.rate(stand, pgbench.ONE_STATEMENT, clients, SECONDS))
        four.limits.append(pgbench.rate(stand, pgbench.FOUR_STATEMENTS, clients, SECONDS))
    return [four, one]


def _with_keys(port: int) -> list[Figure]:
    """What an Idempotency-Key costs, and what the web server does without a database."""
    keys = Figure("the same with an `Idempotency-Key`, 8 clients", UNIT, "without a key", KEYS_GOAL)
    rides = Figure("`POST /rides`, 8 clients", UNIT, "`GET /healthz`, 8 clients")
    for _ in range(ROUNDS[8]):
        keys.runs.append(load.rate(port, load.rides_with_keys(), 8, SECONDS))
        without = load.rate(port, load.RIDES, 8, SECONDS)
        keys.limits.append(without)
        rides.runs.append(without)
        rides.limits.append(load.rate(port, load.HEALTH_CHECKS, 8, SECONDS))
    return [keys, rides]


def _processor_time(port: int, roots: dict[str, psutil.Process]) -> list[Figure]:
    """What a ride costs each of the processes that take it, at 8 clients."""
    figures = {name: Figure(f"processor time of a POST, {name}", "µs") for name in roots}
    with load.Clients(port, load.RIDES, 8) as clients:
        clients.rate(load.WARM_UP)
        for _ in range(ROUNDS[8]):
            before = {name: seconds_used(root) for name, root in roots.items()}
            started = time.perf_counter()
            answers = clients.rate(SECONDS) * (time.perf_counter() - started)
            for name, root in roots.items():
                figures[name].runs.append(1e6 * (seconds_used(root) - before[name]) / answers)
    return list(figures.values())
