"""Looks at a world as the live page, the metrics and the terminal do."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from tests.support.world import PATIENCE, World, eventually
from unified_log import sessions
from watch import asking_postgres, asking_redis, gathering
from watch.asking_redis import TIMEOUT
from watch.facts import Database, Facts, Reader
from watch.gathering import Gatherer


def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have later gatherers wait for as long as a busy machine takes."""
    monkeypatch.setattr(gathering, "PATIENCE", PATIENCE)
    monkeypatch.setattr(gathering, "EACH", PATIENCE)
    monkeypatch.setattr(asking_redis, "TIMEOUT", PATIENCE)
    monkeypatch.setattr(asking_postgres, "TIMEOUT", PATIENCE)
    monkeypatch.delitem(asking_postgres.SESSION, "statement_timeout", raising=False)


@contextmanager
def looking(world: World, **changed: str) -> Iterator[Gatherer]:
    """A gatherer of the world's facts."""
    with closing(Gatherer(world.config(**changed))) as gatherer:
        yield gatherer


def look(world: World, **changed: str) -> Facts:
    """The facts as of now, however long the servers take."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        patient(monkeypatch)
        with looking(world, **changed) as gatherer:
            return answered(gatherer)


def answered(gatherer: Gatherer) -> Facts:
    """The facts of a look that gave nothing up, as looks do that take long on a busy machine."""

    def facts() -> Facts | None:
        found = gatherer.gather()
        knows_all = found.log and found.database and found.database.rollup.dirty_minutes is not None
        return found if knows_all or found.gathered_in_seconds < TIMEOUT / 2 else None

    return eventually(facts, "a look that gave nothing up")


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
