"""Periods that are closed, without the reading that goes before it."""

from decimal import Decimal

from tests.support.world import World
from unified_log.database import one_row

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
