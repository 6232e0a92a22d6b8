"""A session in which something else happens right before one of its statements."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.support.world import World


class _Interrupted(psycopg.Connection):
    before: Any = None
    between: Callable[[], object] | None = None

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        if self.between and query == self.before:
            self.between()
        return super().execute(query, *arguments, **options)


@contextmanager
def interrupted(
    world: World, before: object, between: Callable[[], object]
) -> Iterator[psycopg.Connection]:
    """`between` happens each time before the statement `before`."""
    with _Interrupted.connect(world.postgres_url, autocommit=True) as connection:
        connection.before, connection.between = before, between
        yield connection
