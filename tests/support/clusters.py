"""Worlds on the shared servers of a test process, on a Postgres cluster of a test's own, or a pair.

A restore sets a whole cluster back, so it needs one of its own. Pairs fail over, as in chaos.
"""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from demo.embedded import stock
from demo.embedded.servers import Postgres, Redis
from demo.embedded.stream_servers import STREAM_SERVERS, VALKEY
from lab.chaos.backup import Backup
from lab.chaos.postgres_pair import PostgresPair
from lab.chaos.proxy import HOST
from lab.chaos.redis_pair import RedisPair
from tests.support.folders import short_folder
from tests.support.prepared import put_into
from tests.support.world import World, eventually

_numbers = itertools.count()

# Marks what is run on Valkey and on the oldest Redis that the code supports.
each_stream_server = pytest.mark.parametrize(
    "redis", ["valkey"] if stock.named(stock.REDIS) else STREAM_SERVERS, indirect=True
)


@contextmanager
def fresh_world(
    postgres: Postgres, redis: Redis, folder: Path, defaults: Mapping[str, str] | None = None
) -> Iterator[World]:
    """A migrated database and an empty log.

    With `defaults` for its sessions, the database is empty instead, and has a second schema.
    """
    name = f"test_{next(_numbers)}"
    for server in (postgres, redis):
        if not server.running:  # a test that failed half-way
            server.start()
    template = "rocket_rides" if defaults is None else "template0"
    with psycopg.connect(postgres.url, dbname="postgres", autocommit=True) as admin:
        # Before 15 there is no other strategy.
        strategy = "STRATEGY FILE_COPY" if admin.info.server_version >= 150_000 else ""
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template} {strategy}")
    url = postgres.url.replace("/rocket_rides", f"/{name}")
    if defaults is not None:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("CREATE SCHEMA elsewhere")
            for setting, value in defaults.items():
                admin.execute(f"ALTER DATABASE {name} SET {setting} = {value}")
    with world_on(postgres, redis, name, folder, url) as world:
        yield world
    with psycopg.connect(postgres.url, dbname="postgres", autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def cluster(settings: Mapping[str, str] | None = None) -> Iterator[Postgres]:
    """A Postgres in a folder of its own, not started."""
    with short_folder() as folder:
        server = Postgres(folder / "data", folder / "run", settings)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def migrated(prepared: Path, settings: Mapping[str, str] | None = None) -> Iterator[Postgres]:
    """A cluster with the schema, started."""
    with cluster(settings) as server:
        put_into(server.data, prepared)
        server.start()
        yield server


@contextmanager
def world_on(
    postgres: Postgres, redis: Redis, stream: str, folder: Path, url: str = ""
) -> Iterator[World]:
    """A world with an empty log, by default on the only database of a cluster."""
    world = World(postgres, redis, url or postgres.url, stream, folder)
    with world.exits:
        yield world
        world.log().redis.delete(stream)


def restore(world: World, backup: Backup, *, recovery_signal: bool) -> None:
    world.postgres.kill()
    backup.restore(recovery_signal=recovery_signal)
    world.postgres.start()
    until_promoted(world)


def until_promoted(world: World) -> None:
    eventually(lambda: world.value("SELECT pg_is_in_recovery()::int") == 0, "the end of recovery")


@contextmanager
def redis_pair() -> Iterator[RedisPair]:
    with short_folder() as folder:
        pair = RedisPair(folder, VALKEY)
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
    url = f"postgresql://postgres@{HOST}:{pair.proxy.port}/rocket_rides"
    stream = pair.primary.sockets.parent.name
    with world_on(pair.primary, redis, stream, folder, url) as world:
        yield world
