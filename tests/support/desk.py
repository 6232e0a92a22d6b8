"""A worker at the queue, and what the queue's tables say.

Rides go by their numbers here: 1 is the first one of the database's cell, whose id is
`cell_start() + 1`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, LiteralString, TypeVar

from psycopg import sql
from psycopg.rows import TupleRow

from consumers.receipts.delivery import give_up
from consumers.receipts.queue import Attempt, Ended, Outcomes, Queue
from consumers.receipts.statements import INBOX, MAKE_WORKER
from consumers.receipts.verdict import Kind, Verdict
from tests.support.world import World
from unified_log import database, session_settings

T = TypeVar("T")

MOST = 3
LEASE = 60.0  # seconds; nobody waits for it
DELIVERED, REFUSED = Verdict(Kind.DELIVERED, "204"), Verdict(Kind.REFUSED, "410")
FAILED, AWAY = Verdict(Kind.RETRY, "503"), Verdict(Kind.AWAY, "no address")
STOPPED = Verdict(Kind.STOPPED, "stopped")

LATER = "UPDATE receipts SET due_at = now() - interval '1 second'"


class Desk:
    """A worker at the queue, on an event loop and a connection of its own."""

    def __init__(self, world: World, name: str = "one", most: int = MOST) -> None:
        self._runner = asyncio.Runner()
        session = {**session_settings.NESTED_LOOPS, "lock_timeout": "10s"}
        self.connection = self.run(database.connect_async(world.postgres_url, name, **session))
        self.queue = Queue(self.connection, name, most, LEASE)
        self.start = world.start
        self.run(self.connection.execute(MAKE_WORKER, {"worker": name}))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def do(self, statement: LiteralString, **values: object) -> list[TupleRow]:
        return self.run(self.queue.do(statement, **values))

    def bring(self, *rides: int) -> int:
        """Put rides into the inbox; returns how many are new to it."""
        none = [None] * len(rides)
        traces = {"traceparents": none, "tracestates": none}
        [(count,)] = self.do(
            INBOX, rides=[self.start + ride for ride in rides], ignored=0, passed=0, **traces
        )
        return int(count)

    def take(self, room: int = 100, *, quarantined: bool = False) -> list[Attempt]:
        """Take what is due, wherever in the queue it is."""
        return self.run(self.queue.take(room, quarantined=quarantined, look_at_all=True))

    def takes(self, room: int = 100, *, quarantined: bool = False) -> list[int]:
        """The rides that it takes."""
        return [self.ride(of) for of in self.take(room, quarantined=quarantined)]

    def ride(self, attempt: Attempt) -> int:
        """The number of its ride."""
        return attempt.receipt.ride_id - self.start

    def first(self) -> Attempt:
        """An attempt for ride 1 that is under way, and for no other ride."""
        postponed = "UPDATE receipts SET due_at = 'infinity' WHERE ride_id > cell_start() + 1"
        self.run(self.connection.execute(postponed))
        return self.again()

    def again(self) -> Attempt:
        """Another one."""
        self.run(self.connection.execute(LATER + " WHERE ride_id = cell_start() + 1"))
        [attempt] = self.take()
        return attempt

    def save(self, *ended: Ended) -> Outcomes:
        outcomes = Outcomes()
        self.run(self.queue.save(ended, outcomes))
        return replace(
            outcomes,
            delivered=[ride_id - self.start for ride_id in outcomes.delivered],
            again=[ride_id - self.start for ride_id in outcomes.again],
            dead={ride_id - self.start: why for ride_id, why in outcomes.dead.items()},
        )

    def gives_up(self) -> dict[int, str]:
        """Take what is due; the rides whose receipts are dead now, for no attempt was left."""
        dead: dict[int, str] = {}
        while ended := [
            (attempt, give_up(attempt))
            for attempt in self.take(quarantined=True)
            if attempt.is_exhausted
        ]:
            dead |= self.save(*ended).dead
        return dead

    def close(self) -> None:
        with self._runner:
            self.run(self.connection.close())


Desks = Callable[..., Desk]


def row(world: World, *columns: str, ride: int = 1) -> tuple[Any, ...] | None:
    query = sql.SQL("SELECT {} FROM receipts WHERE ride_id = cell_start() + %s").format(
        sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    return world.connection.execute(query, [ride]).fetchone()


def rows(world: World) -> list[int]:
    found = world.connection.execute("SELECT ride_id - cell_start() FROM receipts ORDER BY 1")
    return [ride for (ride,) in found]


def counted(world: World) -> tuple[int, int, int]:
    """What the workers have delivered, given up, and swept."""
    return database.one_row(
        world.connection.execute(
            "SELECT coalesce(sum(delivered), 0)::int, coalesce(sum(dead), 0)::int,"
            " coalesce(sum(swept), 0)::int FROM receipts_workers"
        )
    )


def state(world: World) -> tuple[int, int]:
    """Up to which ride the inbox is complete, and up to which there are outcomes."""
    return database.one_row(
        world.connection.execute(
            "SELECT inbox_to - cell_start(), complete_to - cell_start() FROM receipts_state"
        )
    )
