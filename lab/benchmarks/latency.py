"""How long a ride takes from its answer (201) until it is in both totals, through a whole fleet.

One loop sends the rides, and asks Postgres for the lowest checkpoint every half millisecond while a
ride is under way: a checkpoint commits with its total. The figure includes what this adds, half a
turn of the loop on average. The limit is the least that any fleet has to do, done directly: one
durable append to the log, then one durable commit.
"""

import heapq
import random
import select
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from statistics import quantiles

import psycopg

from lab.benchmarks import fleet, load
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand
from rocket_rides import database
from rocket_rides.log import Log
from rocket_rides.terms import Term

ROUNDS = 3
IDLE_RIDES = 100
PAUSE = (0.02, 0.1)  # seconds between idle rides; random, to match no polling interval
NOBODYS = Term("0" * 16, 0)
BUSY_RATE, FULL_RATE = 100.0, 1000.0  # rides per second on average, at random moments
BUSY_SECONDS, FULL_SECONDS = 6, 4
CLIENTS = 16  # each has one request under way at most
POLL = 0.0005  # seconds between looks at the checkpoints
PATIENCE = 10.0

LIMIT = "one append, then one commit"

CREATE = "CREATE TABLE by_hand AS SELECT 0 AS last_ride_id"
COMMIT = "UPDATE by_hand SET last_ride_id = last_ride_id + 1"

Milliseconds = list[float]


def measure(stand: Stand) -> list[Figure]:
    """Rides one at a time, and rides at two steady rates."""
    idle = percentiles("idle", 4, 10, headline=True)
    busy = percentiles(f"{BUSY_RATE:.0f} rides/s", 4, 10)
    full = percentiles(f"{FULL_RATE:,.0f} rides/s", None, 25)
    reached = Figure(f"Rate reached of {FULL_RATE:,.0f} rides/s", "rides/s")
    with (
        fleet.fleet(stand) as running,
        database.connect(stand.postgres.url, "benchmark") as connection,
        Log(stand.redis.url, "by-hand") as log,
    ):

        def rides(number: float, rate: float | None = None) -> Milliseconds:
            with ExitStack() as exits:
                clients = [
                    exits.enter_context(closing(load.KeepAlive(running.port)))
                    for _ in range(CLIENTS if rate else 1)
                ]
                return Journey(clients, connection, rate).rides(int(number))

        connection.execute(CREATE)
        for _ in range(ROUNDS):
            limit = by_hand(connection, log)
            add(idle, rides(IDLE_RIDES), limit)
            add(busy, rides(BUSY_RATE * BUSY_SECONDS, BUSY_RATE), limit)
            began = time.perf_counter()
            add(full, rides(FULL_RATE * FULL_SECONDS, FULL_RATE), limit)
            reached.runs.append(FULL_RATE * FULL_SECONDS / (time.perf_counter() - began))
    return [*idle.values(), *busy.values(), *full.values(), reached]


def percentiles(
    when: str, p50: float | None, p99: float, *, headline: bool = False
) -> dict[int, Figure]:
    """The two figures of a journey, with their goals in milliseconds."""
    goals = {50: p50, 99: p99}
    return {
        percent: Figure(
            f"Ride to both totals, {when}, p{percent}",
            "ms",
            LIMIT,
            Goal("value", "<=", goal) if goal else None,
            headline=headline,
        )
        for percent, goal in goals.items()
    }


def add(figures: dict[int, Figure], took: Milliseconds, limit: Milliseconds) -> None:
    """Add one round's percentiles to its figures."""
    for percent, figure in figures.items():
        figure.runs.append(quantiles(took, n=100)[percent - 1])
        figure.limits.append(quantiles(limit, n=100)[percent - 1])


class Journey:
    """Follows rides until they are counted: one after another, or `rate` a second."""

    def __init__(
        self,
        clients: Sequence[load.KeepAlive],
        connection: psycopg.Connection,
        rate: float | None = None,
        *,
        counted: Callable[[psycopg.Connection], int] = fleet.counted,
    ) -> None:
        self._counted = counted  # up to which ride
        self._free = list(clients)
        self._asking: dict[int, load.KeepAlive] = {}  # by descriptor
        self._connection = connection
        self._rate = rate
        self._answered: list[tuple[int, float]] = []  # heap of rides not counted yet: id, when
        self._due = self._look_at = time.perf_counter()

    def rides(self, number: int) -> Milliseconds:
        """Send `number` rides and follow them. Raises TimeoutError if one gets lost."""
        to_send = number
        took: Milliseconds = []
        while len(took) < number:
            while to_send and self._may_send():
                self._send()
                to_send -= 1
            self._receive(self._until_next(to_send))
            if self._answered and time.perf_counter() >= self._look_at:
                took += self._arrived()
                self._look_at = time.perf_counter() + POLL
        return took

    def _may_send(self) -> bool:
        in_turn = self._rate is not None or not (self._asking or self._answered)
        return bool(self._free) and in_turn and time.perf_counter() >= self._due

    def _send(self) -> None:
        client = self._free.pop()
        client.send(next(load.RIDES))
        self._asking[client.socket.fileno()] = client
        if self._rate is not None:
            self._due += random.expovariate(self._rate)

    def _until_next(self, to_send: int) -> float:
        """Seconds for which there is nothing to do but to receive answers."""
        until = [self._look_at] if self._answered else []
        if to_send and self._free and (self._rate is not None or not self._answered):
            until.append(self._due)
        return max(0.0, min(until, default=self._due + PATIENCE) - time.perf_counter())

    def _receive(self, seconds: float) -> None:
        for descriptor in select.select([*self._asking], [], [], seconds)[0]:
            if answer := self._asking[descriptor].receive():
                heapq.heappush(self._answered, (fleet.ride_id(answer), time.perf_counter()))
                self._free.append(self._asking.pop(descriptor))

    def _arrived(self) -> Milliseconds:
        counted = self._counted(self._connection)
        now = time.perf_counter()
        took: Milliseconds = []
        while self._answered and self._answered[0][0] <= counted:
            took.append((now - heapq.heappop(self._answered)[1]) * 1000)
            if self._rate is None:
                self._due = now + random.uniform(*PAUSE)
        if self._answered and now - self._answered[0][1] > PATIENCE:
            raise TimeoutError(f"ride {self._answered[0][0]} is not counted")
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
