"""How long a ride takes from its answer (201) until it is in both totals, through a whole fleet.

One loop sends the rides and asks Postgres for the lowest checkpoint about every half millisecond,
with a prepared statement: a checkpoint commits with its total. The figure includes what this adds,
half a turn of the loop on average. The limit is the least that any fleet has to do, done directly:
one durable append to the log, then one durable commit.
"""

import random
import select
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from statistics import quantiles

import psycopg

from benchmarks import fleet, load
from benchmarks.figures import Figure, Goal
from benchmarks.stand import Stand
from rocket_rides import database
from rocket_rides.log import Log
from rocket_rides.terms import Term

ROUNDS = 3
IDLE_RIDES = 100
PAUSE = (0.02, 0.1)  # seconds between idle rides; random, to match no polling interval
NOBODYS = Term("0" * 16, 0)
BUSY_RIDES = 1000
BUSY_RATE = 100.0  # rides per second on average, at random moments
POLL = 0.0005  # seconds
PATIENCE = 10.0

GOALS = {50: Goal("value", "<=", 20), 99: Goal("value", "<=", 80)}
LIMIT = "one append, then one commit"

CREATE = "CREATE TABLE by_hand AS SELECT 0 AS last_ride_id"
COMMIT = "UPDATE by_hand SET last_ride_id = last_ride_id + 1"

Milliseconds = list[float]


def measure(stand: Stand) -> list[Figure]:
    """Rides one at a time, and rides at a steady rate."""
    idle = {
        p: Figure(f"Ride to both totals, idle, p{p}", "ms", LIMIT, GOALS[p], headline=True)
        for p in GOALS
    }
    name = f"Ride to both totals, {BUSY_RATE:.0f} rides/s"
    busy = {p: Figure(f"{name}, p{p}", "ms", LIMIT, GOALS[p]) for p in GOALS}
    with (
        fleet.fleet(stand) as running,
        database.connect(stand.postgres.url, "benchmark") as connection,
        Log(stand.redis.url, "by-hand") as log,
        closing(load.KeepAlive(running.port)) as client,
    ):
        connection.execute(CREATE)
        for _ in range(ROUNDS):
            limit = by_hand(connection, log)
            add(idle, Journey(client, connection, alone=True).rides(IDLE_RIDES), limit)
            add(busy, Journey(client, connection, alone=False).rides(BUSY_RIDES), limit)
    return [*idle.values(), *busy.values()]


def add(figures: dict[int, Figure], took: Milliseconds, limit: Milliseconds) -> None:
    """Add one round's percentiles to its figures."""
    for percent, figure in figures.items():
        figure.runs.append(quantiles(took, n=100)[percent - 1])
        figure.limits.append(quantiles(limit, n=100)[percent - 1])


class Journey:
    """Follows rides until they are counted, one after another or at a steady rate."""

    def __init__(
        self,
        client: load.KeepAlive,
        connection: psycopg.Connection,
        *,
        alone: bool,
        counted: Callable[[psycopg.Connection], int] = fleet.counted,
    ) -> None:
        self._counted = counted  # up to which ride
        self._client = client
        self._connection = connection
        self._alone = alone
        self._waiting: deque[tuple[int, float]] = deque()
        self._asking = False
        self._due = time.perf_counter()

    def rides(self, number: int) -> Milliseconds:
        """Send `number` rides and follow them. Raises TimeoutError if one gets lost."""
        to_send = number
        took: Milliseconds = []
        with select.epoll() as poll:
            poll.register(self._client.socket, select.EPOLLIN)
            while len(took) < number:
                if to_send and self._may_send():
                    self._client.send(next(load.RIDES))
                    self._asking = True
                    to_send -= 1
                if poll.poll(POLL):
                    self._receive()
                took += self._arrived()
        return took

    def _may_send(self) -> bool:
        if self._asking or (self._alone and self._waiting) or time.perf_counter() < self._due:
            return False
        if not self._alone:
            self._due += random.expovariate(BUSY_RATE)
        return True

    def _receive(self) -> None:
        if answer := self._client.receive():
            self._waiting.append((fleet.ride_id(answer), time.perf_counter()))
            self._asking = False

    def _arrived(self) -> Milliseconds:
        counted = self._counted(self._connection)
        now = time.perf_counter()
        took: Milliseconds = []
        while self._waiting and self._waiting[0][0] <= counted:
            took.append((now - self._waiting.popleft()[1]) * 1000)
            self._due = now + random.uniform(*PAUSE) if self._alone else self._due
        if self._waiting and now - self._waiting[0][1] > PATIENCE:
            raise TimeoutError(f"ride {self._waiting[0][0]} is not counted")
        return took


def by_hand(connection: psycopg.Connection, log: Log) -> Milliseconds:
    """The limit: an append to a log and a commit, one after the other."""
    took: Milliseconds = []
    for position in range(IDLE_RIDES):
        time.sleep(random.uniform(*PAUSE) / 4)
        started = time.perf_counter()
        log.append([(position + 1, '{"id": 1, "distance": 539.837}')], position, NOBODYS)
        connection.execute(COMMIT)
        took.append((time.perf_counter() - started) * 1000)
    return took
