"""Real processes, rides in flow, and a server that loses its mind: every ride counts once."""

import threading
from collections.abc import Callable

import psycopg
import pytest

from tests.test_consumer import cut_newest, flush
from tests.test_consumer import restart as restart_redis
from tests.world import World, eventually, take

CONSUMERS = ("consumer0", "consumer1")


def restart_postgres(world: World) -> None:
    world.postgres.stop()
    world.postgres.start()


def crash_postgres(world: World) -> None:
    world.postgres.kill()
    world.postgres.start()


def crash_redis(world: World) -> None:
    world.redis.kill()
    world.redis.start()


DISASTERS = [flush, restart_redis, crash_redis, cut_newest, restart_postgres, crash_postgres]


def all_exact(world: World) -> bool:
    return all(world.standing(name) == world.truth for name in CONSUMERS)


class Rides:
    """Takes a ride every few milliseconds, until told to end; waits for a lost database."""

    def __init__(self, world: World) -> None:
        self.url = world.postgres_url
        self.taken = 0
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while not self.end.is_set():
            try:
                with psycopg.connect(self.url) as connection:
                    while not self.end.wait(0.003):
                        take(connection, "0.001", 7)
                        connection.commit()
                        self.taken += 2
            except psycopg.OperationalError:
                self.end.wait(0.05)

    def flow(self, rides: int) -> None:
        """Wait until so many more have been taken."""
        enough = self.taken + rides
        eventually(lambda: self.taken >= enough, "more rides")

    def stop(self) -> None:
        self.end.set()
        self.thread.join()


@pytest.mark.parametrize("disaster", DISASTERS)
def test_a_disaster_in_mid_flow_costs_no_ride(
    world: World, disaster: Callable[[World], None]
) -> None:
    faults = {"DOUBLE_SEND_RATE": "0.1", "CRASH_RATE": "0.1"}
    for name in CONSUMERS:
        world.service("consumers", name, **faults).says("stands at")
    world.service("streamer", **faults).says("leading")
    rides = Rides(world)
    try:
        rides.flow(100)
        disaster(world)
        rides.flow(100)
    finally:
        rides.stop()
    eventually(lambda: all_exact(world), "exact totals")


@pytest.mark.parametrize("disaster", [flush, cut_newest])
def test_entries_lost_with_no_ride_after_them_are_healed(
    world: World, disaster: Callable[[World], None]
) -> None:
    """The consumers are stopped, so that they have not read what is lost."""
    consumers = [world.service("consumers", name).says("stands at") for name in CONSUMERS]
    world.service("streamer").says("leading")
    world.take(1, 2, 3)
    eventually(lambda: all_exact(world))
    for consumer in consumers:
        consumer.pause()
    world.take(4, 5, 6)
    eventually(lambda: world.staged() == 0)
    disaster(world)
    for consumer in consumers:
        consumer.resume()
    eventually(lambda: all_exact(world), "exact totals")
