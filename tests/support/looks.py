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
    """The facts as of now, once both servers answer in time: a busy machine may take longer."""
    with looking(world, **changed) as gatherer:
        return eventually(lambda: answered(gatherer.gather()), "an answer of both servers")


def answered(facts: Facts) -> Facts | None:
    """These, unless a server did not answer in time."""
    return None if NO_ANSWER in (facts.postgres.reason, facts.redis.reason) else facts


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
