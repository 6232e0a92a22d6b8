"""Looks at a world as the live page, the metrics and the terminal do."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from rocket_rides import sessions
from tests.support.world import World, eventually
from watch.facts import NO_ANSWER, Database, Facts, Reader
from watch.gathering import Gatherer


@contextmanager
def looking(world: World, **changed: str) -> Iterator[Gatherer]:
    """A gatherer of the world's facts."""
    with closing(Gatherer(world.config(**changed))) as gatherer:
        yield gatherer


def look(world: World, **changed: str) -> Facts:
    """The facts as of now; a busy machine may have to be asked again."""
    with looking(world, **changed) as gatherer:
        return answered(gatherer)


def answered(gatherer: Gatherer) -> Facts:
    """What it finds, once both servers answer in time."""

    def facts() -> Facts | None:
        found = gatherer.gather()
        return None if NO_ANSWER in (found.postgres.reason, found.redis.reason) else found

    return eventually(facts, "an answer of both servers")


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


def at_work(world: World, name: str) -> psycopg.Connection:
    """A session with Postgres that is called as a process calls its own."""
    session = world.connect()
    session.execute(sessions.RENAME, [name], prepare=False)
    return session
