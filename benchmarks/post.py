"""POST /rides per second, compared with pgbench's same transaction in the same database."""

from benchmarks import load, pgbench
from benchmarks.figures import Figure, Goal
from benchmarks.stand import Stand

CLIENTS = (1, 8, 32)
ROUNDS = 3
SECONDS = 3
UNIT = "requests/s"
GOAL = Goal("ratio", ">=", 0.35)


def measure(stand: Stand) -> list[Figure]:
    """The API and pgbench take turns, so that a machine that slows down slows both."""
    figures = []
    with stand.api() as (port, _):
        for clients in CLIENTS:
            figures += _against_pgbench(stand, port, clients)
        figures += _with_keys(port)
    return figures


def _against_pgbench(stand: Stand, port: int, clients: int) -> list[Figure]:
    name = f"POST /rides, {clients} client{'s' if clients > 1 else ''}"
    goal = GOAL if clients == 8 else None
    one = Figure(name, UNIT, "pgbench, the API's statement", goal)
    four = Figure(name, UNIT, "pgbench, BEGIN; INSERT; INSERT; COMMIT", goal, headline=clients == 8)
    for _ in range(ROUNDS):
        rides = load.rate(port, load.RIDES, clients, SECONDS)
        one.runs.append(rides)
        four.runs.append(rides)
        one.limits.append(pgbench.rate(stand, pgbench.ONE_STATEMENT, clients, SECONDS))
        four.limits.append(pgbench.rate(stand, pgbench.FOUR_STATEMENTS, clients, SECONDS))
    return [one, four]


def _with_keys(port: int) -> list[Figure]:
    """What an Idempotency-Key costs, and what the web server does without a database."""
    keys = Figure("POST /rides with Idempotency-Key, 8 clients", UNIT, "without a key")
    rides = Figure("POST /rides, 8 clients", UNIT, "GET /healthz, 8 clients")
    for _ in range(ROUNDS):
        keys.runs.append(load.rate(port, load.rides_with_keys(), 8, SECONDS))
        without = load.rate(port, load.RIDES, 8, SECONDS)
        keys.limits.append(without)
        rides.runs.append(without)
        rides.limits.append(load.rate(port, load.HEALTH_CHECKS, 8, SECONDS))
    return [keys, rides]
