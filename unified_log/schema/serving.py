"""Which code a schema serves: the row of each component in `schema_versions` says it.

A process runs on its own revision of the schema, and on any newer one that still serves it; for an
older one it waits. First its session takes a shared lock for its revision, and then it reads the
row. A migration that ends the service of old revisions first takes their locks exclusively. So it
waits for the sessions that are there, and those that come later read what it has committed.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from unified_log import database
from unified_log.database import NOWHERE, one_row
from unified_log.errors import Unavailable

# One statement for all components of a process. It must have ended before VERSIONS begins.
HOLD = """
    SELECT bool_and(pg_try_advisory_lock_shared(lock, revision))
    FROM unnest(%s::integer[], %s::integer[]) held (lock, revision)
"""
VERSIONS = "SELECT component, revision, serves_from, digest FROM schema_versions"
OWNER = "connect as the owner of the log's tables, or have it give this role its rights"
ENDS = "a migration is ending the service of this code, of {}; install the newer code"


class NoSchema(Unavailable):
    """The database has no schema of this component, or one that has no version."""


class NotServed(Unavailable):
    """The database's schema is newer than this code, and does not serve it any more."""


class Version(NamedTuple):
    """What a database has: the revision, the oldest code that it serves, and a digest."""

    revision: int
    serves_from: int
    digest: str


class Component(NamedTuple):
    """A part of the code that has a schema: the log, or the application."""

    name: str
    schema: str  # what it is called, in a sentence
    revision: int  # the schema that this code was written for
    digest: str  # of what makes that schema, so that another one of this number is told from it
    lock: int  # with a revision, the lock of the sessions of that code
    absent: str  # what to say where there is none
    upgrade: str  # what a person does about an older one
    digits: int = 1
    rights: str = OWNER  # what a person does where a role may not know what a database has

    def number(self, revision: int) -> str:
        """A revision as people write it."""
        return f"{revision:0{self.digits}}"

    def refusal(self, found: Version) -> str:
        """Why this code can't run on that version; empty where it can."""
        has, mine = self.number(found.revision), self.number(self.revision)
        if found.revision < self.revision:
            return f"{self.schema} is {has}, not {mine}; {self.upgrade}"
        if found.serves_from > self.revision:
            return (
                f"{self.schema} is {has}, newer than this code, of {mine}, which it does not serve;"
                " install the newer code"
            )
        return self.another(found) if self.differs(found) else ""

    def differs(self, found: Version) -> bool:
        """Whether the same revision is not the same schema."""
        return found.revision == self.revision and found.digest != self.digest

    def another(self, found: Version) -> str:
        """What to say then."""
        return (
            f"{self.schema} was made by another {self.number(found.revision)} than this code's,"
            " which was changed since: put that back as it was, or, in development only, start with"
            " an empty database"
        )


def require(connection: psycopg.Connection, *components: Component) -> None:
    """Have this session hold its code's locks, and `check`. Costs two round trips."""
    hold(connection, *components)
    check(connection, *components)


def hold(connection: psycopg.Connection, *components: Component) -> None:
    """Have migrations that end the service of this code wait for this session's end.

    Raises NotServed where one is doing so. The locks are the session's, as often as it asks.
    """
    _require_held(
        connection.execute(HOLD, _locks(components), prepare=False).fetchone(), components
    )


async def hold_async(connection: "psycopg.AsyncConnection[Any]", *components: Component) -> None:
    """The same for an event loop. `check` comes after it, as ever."""
    cursor = await connection.execute(HOLD, _locks(components), prepare=False)
    _require_held(await cursor.fetchone(), components)


def _locks(components: Sequence[Component]) -> list[list[int]]:
    return [[each.lock for each in components], [each.revision for each in components]]


def _require_held(row: Any, components: Sequence[Component]) -> None:
    if row != (True,):
        raise NotServed(ENDS.format(components[0].number(components[0].revision)))


def check(connection: psycopg.Connection, *components: Component) -> None:
    """Raise NoSchema, or Unavailable, unless the database serves this code. One round trip."""
    found = versions(connection, components[0].rights)
    for component in components:
        if component.name not in found:
            if one_row(connection.execute("SELECT current_schema()", prepare=False))[0] is None:
                raise Unavailable(NOWHERE)
            raise NoSchema(component.absent)
        version = found[component.name]
        if why := component.refusal(version):
            ended = version.serves_from > component.revision
            raise (NotServed if ended else Unavailable)(why)


def versions(connection: "psycopg.Connection[Any]", rights: str = OWNER) -> dict[str, Version]:
    """What the database has, by component. Raises Unavailable where this role may not know.

    A transaction that is open goes on, whatever is found.
    """
    idle = connection.info.transaction_status == TransactionStatus.IDLE
    try:
        with (
            nullcontext() if idle else connection.transaction(),
            connection.cursor(row_factory=tuple_row) as cursor,
        ):
            rows: Sequence[Any] = cursor.execute(VERSIONS, prepare=False).fetchall()
    except (errors.UndefinedTable, errors.UndefinedColumn):
        return {}
    except errors.InsufficientPrivilege as error:
        raise Unavailable(f"{database.why(error)}: {rights}") from None
    return {name: Version(*rest) for name, *rest in rows}
