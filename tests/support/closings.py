"""Periods that are closed, without the reading that goes before it."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import psycopg

from consumers.totals.total import Total
from tests.support.disasters import flush
from tests.support.world import Consumer, World, catch_up, exact
from unified_log.database import one_row
from unified_log.readers.healing import View
from unified_log.readers.limit import Limit
from unified_log.readers.taking import Taking

CLOSE = """
    WITH run AS (
        INSERT INTO runs (status, position, ended_at) VALUES ('agreed', %(position)s, now())
        RETURNING id
    )
    INSERT INTO closings (position, rides, total_distance, digest, run_id, ledger, closed_by)
    SELECT %(position)s, count(*), coalesce(sum(distance), 0) + %(off)s, repeat('0', 64), run.id,
           repeat('0', 64), 'a test'
    FROM run LEFT JOIN rides ON rides.id <= %(position)s GROUP BY run.id
    RETURNING id
"""


RECOUNT = "UPDATE checkpoints SET recount = true"
LONGER = "UPDATE rides SET distance = distance + %s WHERE id = cell_start() + %s"

# Whoever alters a row by hand may know of its hash.
REHASH = ("UPDATE closings SET hash = closing_hash(closings)",)


def close(world: World, position: int, off: Decimal | int = 0) -> int:
    """Close the rides up to a position, with a sum that is wrong by `off`; returns the number."""
    [number] = one_row(world.connection.execute(CLOSE, {"position": position, "off": off}))
    return int(number)


def alter(world: World, *changes: str) -> None:
    """Change rows of closings by hand, past the trigger."""
    world.connection.execute("ALTER TABLE closings DISABLE TRIGGER for_good")
    for change in changes:
        world.connection.execute(change.encode())
    world.connection.execute("ALTER TABLE closings ENABLE TRIGGER for_good")


def reopen(world: World, number: int) -> None:
    world.connection.execute(
        "UPDATE closings SET reopened_at = now(), reopened_by = 'a test', reason = 'a test'"
        " WHERE id = %s",
        [number],
    )


@contextmanager
def altered(world: World, ride: int = 1) -> Iterator[None]:
    """The cell's so manieth ride is longer by a metre: who reads it meanwhile has one too many."""
    world.connection.execute(LONGER, [1, ride])
    yield
    world.connection.execute(LONGER, [-1, ride])


def is_right(world: World, consumer: Consumer | None = None, ride: int = 1) -> bool:
    """Whether a total is exact, which did not read that ride."""
    consumer = consumer or world.consumer()
    with altered(world, ride):
        catch_up(consumer)
    return exact(world, consumer)


def begin(world: World, connection: psycopg.Connection, name: str) -> None:
    """What a reader does first."""
    Taking(Total(connection, name), View(connection, {}), world.stream, Limit(1))


def three_closed(world: World) -> World:
    """Five rides, of which three are closed; the log has lost all of them."""
    world.send(1, 2, 3, 4, 5)
    close(world, world.start + 3)
    flush(world)
    return world
