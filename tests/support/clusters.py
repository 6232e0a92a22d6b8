"""Worlds on the shared servers of a test process, or in a Postgres cluster of a test's own.

A restore sets a whole cluster back, so it needs one of its own. The Redis is always shared.
"""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

from demo.embedded.servers import Postgres, Redis
from lab.chaos.backup import Backup
from migrations import upgrade
from tests.support.folders import short_folder
from tests.support.prepared import put_into
from tests.support.world import World, eventually

_numbers = itertools.count()


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
    world = World(postgres, redis, url, name, folder)
    yield world
    log = world.log().redis
    log.delete(name)
    world.close()
    with psycopg.connect(postgres.url, dbname="postgres", autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def cluster() -> Iterator[Postgres]:
    """A Postgres in a folder of its own, not started."""
    with short_folder() as folder:
        server = Postgres(data=folder / "data", sockets=folder / "run")
        yield server
        if server.running:
            server.stop()


@contextmanager
def world_on(postgres: Postgres, redis: Redis, stream: str, folder: Path) -> Iterator[World]:
    world = World(postgres, redis, postgres.url, stream, folder)
    yield world
    world.close()


@contextmanager
def world_of_its_own(redis: Redis, folder: Path, prepared: Path | None = None) -> Iterator[World]:
    """A migrated database that is the only one of its cluster, and an empty log."""
    with cluster() as server:
        if prepared:
            put_into(server.data, prepared)
        server.start()
        if not prepared:
            upgrade(server.url)
        with world_on(server, redis, server.sockets.parent.name, folder) as world:
            yield world
            world.log().redis.delete(world.stream)


def restore(world: World, backup: Backup, *, recovery_signal: bool) -> None:
    world.postgres.kill()
    backup.restore(recovery_signal=recovery_signal)
    world.postgres.start()
    until_promoted(world)


def until_promoted(world: World) -> None:
    eventually(lambda: world.value("SELECT pg_is_in_recovery()::int") == 0, "the end of recovery")
