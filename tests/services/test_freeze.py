"""The freeze: how far the rides are settled, and every consumer, at one moment."""

from collections.abc import Callable
from typing import Any

import psycopg

from analytics.freeze import STANDINGS, freeze
from tests.support.world import World, catch_up, drain


class InterruptedConnection(psycopg.Connection):
    """Does something else right before it asks where the consumers stand."""

    between: Callable[[], object] | None = None

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        if query == STANDINGS and self.between:
            self.between()
        return super().execute(query, *arguments, **options)


def test_what_moves_meanwhile_is_not_seen_in_part(world: World) -> None:
    """Or a consumer would seem to be past every ride that was sent, and be reset."""
    streamer, consumer = world.streamer(), world.consumer()
    world.take(1, 2)
    drain(streamer)
    before = catch_up(consumer)

    def go_on() -> None:
        world.take(4)
        drain(streamer)
        assert catch_up(consumer) != before

    with InterruptedConnection.connect(world.postgres_url, autocommit=True) as connection:
        connection.between = go_on
        frozen = freeze(connection)
    [standing] = frozen.consumers
    assert frozen.last_ride_id == before.ride_id
    assert (standing.last_ride_id, standing.total_distance) == before
