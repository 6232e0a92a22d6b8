"""Real processes, rides in flow, and a server that loses its mind: every ride counts once."""

from collections.abc import Callable

import pytest

from tests.support.disasters import Rides, crash_postgres, crash_redis, cut_newest, flush
from tests.support.world import World, eventually

pytestmark = pytest.mark.stream_servers

CONSUMERS = ("consumer0", "consumer1")


def all_exact(world: World) -> bool:
    return all(world.standing(name) == world.truth for name in CONSUMERS)


@pytest.mark.parametrize("disaster", [flush, crash_redis, cut_newest, crash_postgres])
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
