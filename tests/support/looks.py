"""Looks at a world as the live page, the metrics and the terminal do."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from tests.support.world import PATIENCE, Service, World, eventually
from unified_log import sessions
from watch import asking_postgres, asking_redis, gathering
from watch.facts import NO_ANSWER, Database, Facts, Reader
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
    """The facts of a look that gave nothing up, as looks do that take long on a busy machine.

    Where not all can be known, the gatherer has to be a `patient` one to be told from that.
    """

    def facts() -> Facts | None:
        found = gatherer.gather()
        knows_all = found.log and found.database and found.database.rollup.dirty_minutes is not None
        return found if knows_all or found.gathered_in_seconds < asking_redis.TIMEOUT / 2 else None

    return eventually(facts, "a look that gave nothing up")


def probed(world: World, *options: str, **environment: str) -> tuple[int, str]:
    """The exit status of `python -m watch.status`, and what it said, as `first_to_tell` has it."""
    return first_to_tell(lambda: world.service("watch.status", *options, **environment))


def first_to_tell(probe: Callable[[], Service]) -> tuple[int, str]:
    """The exit status of the first probe that can tell, and what it said.

    A busy server may take longer to answer than a probe waits. Each one is a process of its own
    that knows nothing of the earlier ones: so where none could ever tell, no later one can.
    """

    def found() -> tuple[int, str] | None:
        service = probe()
        code, said = service.ends(), service.output.read_text()
        return None if code == 2 and NO_ANSWER in said else (code, said)

    return eventually(found, "a probe that every server answers")


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
