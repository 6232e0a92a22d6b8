"""Looks at a world as the live page, the metrics and the terminal do."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from lab.ports import free_ports
from rocket_rides.settings import Settings
from tests.support.world import World
from watch.facts import Database, Facts, Reader
from watch.gathering import Gatherer


def settings_for(world: World, **changed: Any) -> Settings:
    """Settings of who looks at this world, and of a page that shows it."""
    values = {
        "database_url": world.postgres_url,
        "redis_url": world.redis.url,
        "stream_name": world.stream,
        "data_dir": world.folder,
        "watch_port": free_ports(),
    }
    return Settings(**{**values, **changed})


@contextmanager
def looking(world: World, **changed: Any) -> Iterator[Gatherer]:
    """A gatherer of the world's facts."""
    with closing(Gatherer(settings_for(world, **changed))) as gatherer:
        yield gatherer


def look(world: World, **changed: str) -> Facts:
    """The facts as of now."""
    with looking(world, **changed) as gatherer:
        return gatherer.gather()


def said(facts: Facts) -> Database:
    """The facts of Postgres, which must have been up."""
    assert facts.postgres.up, facts.postgres.reason
    assert facts.database
    return facts.database


def seen(world: World) -> Database:
    return said(look(world))


def reader(database: Database, name: str) -> Reader:
    [found] = [reader for reader in database.readers if reader.name == name]
    return found
