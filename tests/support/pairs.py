"""Pairs of servers that fail over, as in chaos, and worlds on their primaries."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.embedded.servers import Postgres, Redis
from demo.embedded.stream_servers import STREAM_SERVERS
from lab.chaos.postgres_pair import PostgresPair
from lab.chaos.proxy import HOST
from lab.chaos.redis_pair import RedisPair
from tests.support.folders import short_folder
from tests.support.prepared import put_into
from tests.support.world import World


@contextmanager
def redis_pair(kind: str) -> Iterator[RedisPair]:
    with short_folder() as folder:
        pair = RedisPair(folder, STREAM_SERVERS[kind])
        try:
            pair.start()
            yield pair
        finally:
            pair.end()


@contextmanager
def postgres_pair(prepared: Path) -> Iterator[PostgresPair]:
    """A migrated primary, and a standby that follows it."""
    with short_folder() as folder:
        put_into(folder / "data", prepared)
        pair = PostgresPair(folder)
        try:
            pair.start()
            pair.primary.wait_until_it_serves()
            pair.attach()
            yield pair
        finally:
            pair.end()


@contextmanager
def world_on_pair(pair: PostgresPair, redis: Redis, folder: Path) -> Iterator[World]:
    """A world on whichever server is the primary: its clients connect through the proxy."""
    postgres: Postgres = pair.primary
    url = f"postgresql://postgres@{HOST}:{pair.proxy.port}/rocket_rides"
    world = World(postgres, redis, url, postgres.sockets.parent.name, folder)
    try:
        yield world
    finally:
        world.close()
        world.log().redis.delete(world.stream)
