"""How long a ride takes from its answer (201) until it is in both totals, through a whole fleet.

Postgres is asked for the lowest checkpoint, which commits with its total, every half millisecond:
that adds half a turn of the loop to the figure. The limit is the least that any fleet must do: one
durable append to the log, then one durable commit.
"""

import contextlib
import heapq
import random
import select
import time
from collections import deque
from collections.abc import Iterator
from statistics import quantiles

import psycopg

from consumers.rides import TYPE
from lab.benchmarks import fleet, load
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand
from unified_log.log import Log, Staged
from unified_log.terms import Term

ROUNDS = 3
IDLE_RIDES = 100
PAUSE = (0.02, 0.1)  # seconds between idle rides, random, so that they match no polling interval
SECONDS = 5  # of each rate
CLIENTS = 16  # each has one request under way at most
POLL = 0.0005  # seconds between looks at the checkpoints
PATIENCE = 60.0  # seconds until a ride is taken to be lost
# Of percentiles, in milliseconds.
GOALS = (
    *(("idle", 50, 4), ("idle", 99, 10)),
    *(("100 rides/s", 50, 4), ("100 rides/s", 99, 10), ("1,000 rides/s", 99, 25)),
)

NOBODYS = Term("0" * 16, 0)
CREATE = "CREATE TABLE by_hand AS SELECT 0 AS position"
COMMIT = "UPDATE by_hand SET position = position + 1"

Milliseconds = list[float]
Ride = tuple[int, float]  # its id, and when it was answered
Counted = Iterator[tuple[float, float]]  # when each ride was answered, and its milliseconds


def measure(stand: Stand) -> list[Figure]:
    runs: dict[str, list[Milliseconds]] = {when: [] for when, _, _ in GOALS}
    limits: list[Milliseconds] = []
    with (
        fleet.fleet(stand) as (port, _),
        stand.connect() as connection,
        Log(stand.redis.url, "by-hand") as log,
    ):
        connection.execute(CREATE)
        for _ in range(ROUNDS):
            limits.append(_by_hand(connection, log))
            runs["idle"].append(_one_at_a_time(port, connection))
            for rate, when in (100, "100 rides/s"), (1000, "1,000 rides/s"):
                took = steadily(port, connection, rate, SECONDS)
                runs[when].append([milliseconds for _, milliseconds in took])
    figures = []
    for when, percent, most in GOALS:
        name, goal = f"Ride to totals, {when}, p{percent}", Goal("value", "<=", most)
        both = [[quantiles(run, n=100)[percent - 1] for run in of] for of in (runs[when], limits)]
        figures.append(Figure(name, "ms", "append and commit", goal, *both))
    return figures


def _one_at_a_time(port: int, connection: psycopg.Connection) -> Milliseconds:
    took: Milliseconds = []
    with contextlib.closing(load.KeepAlive(port)) as client:
        for _ in range(IDLE_RIDES):
            time.sleep(random.uniform(*PAUSE))
            under_way = [(client.post(), time.perf_counter())]
            while under_way:
                took += [milliseconds for _, milliseconds in _counted(under_way, connection)]
                time.sleep(POLL)
    return took


def steadily(
    port: int, connection: psycopg.Connection, rate: float, seconds: float, poll: float = POLL
) -> Counted:
    """Post so many rides a second, on average, each when it is due and a client is free.

    Yields the second in which each was answered. Raises TimeoutError if one gets lost.
    """
    under_way: list[Ride] = []
    asking: dict[int, load.KeepAlive] = {}  # by descriptor
    with contextlib.ExitStack() as exits:
        # In turn: a connection on which nothing is asked for long is closed.
        free = deque(
            exits.enter_context(contextlib.closing(load.KeepAlive(port))) for _ in range(CLIENTS)
        )
        start = due = look_at = time.perf_counter()
        until = due + seconds
        while due < until or asking or under_way:
            if free and due < min(until, time.perf_counter()):
                client = free.popleft()
                client.send(load.RIDE)
                asking[client.socket.fileno()] = client
                due += random.expovariate(rate)
            for descriptor in select.select([*asking], [], [], POLL)[0]:
                if answer := asking[descriptor].receive():
                    heapq.heappush(under_way, (load.ride_id(answer), time.perf_counter()))
                    free.append(asking.pop(descriptor))
            if under_way and time.perf_counter() >= look_at:
                for at, milliseconds in _counted(under_way, connection):
                    yield at - start, milliseconds
                look_at = time.perf_counter() + poll


def _counted(under_way: list[Ride], connection: psycopg.Connection) -> Counted:
    """Take the rides that are in both totals off the heap. Raises TimeoutError if one gets lost."""
    counted, now = fleet.counted(connection), time.perf_counter()
    while under_way and under_way[0][0] <= counted:
        _, at = heapq.heappop(under_way)
        yield at, (now - at) * 1000
    if under_way and now - under_way[0][1] > PATIENCE:
        raise TimeoutError(f"ride {under_way[0][0]} is not counted")


def _by_hand(connection: psycopg.Connection, log: Log) -> Milliseconds:
    took: Milliseconds = []
    for position in range(IDLE_RIDES):
        time.sleep(random.uniform(*PAUSE) / 4)
        started = time.perf_counter()
        record = Staged(position + 1, TYPE, '{"id": 1, "distance": 539.837}')
        log.append([record], position, NOBODYS)
        connection.execute(COMMIT)
        took.append((time.perf_counter() - started) * 1000)
    return took
