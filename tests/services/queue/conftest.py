"""Desks: one before which three rides were brought, and others."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.support.desk import MOST, Desk, Desks
from tests.support.world import World, drain


@pytest.fixture
def desks(world: World) -> Iterator[Desks]:
    """Makes desks, and closes them."""
    with ExitStack() as all_of_them:

        def make(name: str = "one", most: int = MOST) -> Desk:
            desk = Desk(world, name, most)
            all_of_them.callback(desk.close)
            return desk

        yield make


@pytest.fixture
def desk(world: World, desks: Desks) -> Desk:
    """One with three rides in its inbox, which the streamer has sent."""
    world.take(5, 6, 7)
    drain(world.streamer())
    found = desks()
    assert found.bring(1, 2, 3) == 3
    return found


@pytest.fixture
def beside() -> Iterator[ThreadPoolExecutor]:
    """Where a statement runs that has to wait for another."""
    with ThreadPoolExecutor() as threads:
        yield threads
