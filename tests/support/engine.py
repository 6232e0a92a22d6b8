"""What the API asks of Postgres, asked by a test, in sessions as the API's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from api import consumers
from api.booking import TAKE
from api.database import SESSION, Database
from tests.support.world import World

# The API's own statement with positions for psycopg: a distance, and a trace's two texts.
_PSYCOPG = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
TAKE_BY_PSYCOPG = str(TAKE.compile(dialect=_PSYCOPG))


@contextmanager
def opened(world: World, **settings: Any) -> Iterator[Database]:
    """An API's connections to this world's Postgres."""
    database = Database(world.config(**settings))
    try:
        yield database
    finally:
        database.engine.dispose()


def unhurried(session: dict[str, str]) -> dict[str, str]:
    """A session's settings without its time limits, which a busy machine may well meet."""
    return {name: value for name, value in session.items() if not name.endswith("_timeout")}


@contextmanager
def connected(world: World) -> Iterator[Connection]:
    """A session as the API's, but without its time limits."""
    with pytest.MonkeyPatch.context() as patch, opened(world) as database:
        # Not by a SET in the session: a Session keeps the limit that it was opened with.
        patch.setattr("api.database.SESSION", unhurried(SESSION))
        with database.connect() as connection:
            yield connection


def all_shown(world: World) -> list[consumers.Answer]:
    """All readers, as GET /consumers shows them, however long it takes."""
    with connected(world) as connection:
        return consumers.show(connection)
