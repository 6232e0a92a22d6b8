"""Periods that are closed, without the reading that goes before it."""

from decimal import Decimal

from tests.support.world import World
from unified_log.database import one_row

CLOSE = """
    WITH run AS (
        INSERT INTO runs (status, position, ended_at) VALUES ('agreed', %(position)s, now())
        RETURNING id
    ), sums AS (
        SELECT count(*) AS rides, coalesce(sum(distance), 0) + %(off)s AS distance
        FROM rides WHERE id <= %(position)s
    ), last AS (SELECT coalesce(max(id), 0) AS id FROM closings)
    INSERT INTO closings
        (id, position, rides, total_distance, digest, run_id, ledger, closed_by, previous, hash)
    SELECT last.id + 1, %(position)s, rides, distance, repeat('0', 64), run.id, repeat('0', 64),
           'a test', coalesce((SELECT hash FROM closings WHERE closings.id = last.id), ''), ''
    FROM run, sums, last RETURNING id
"""
# As whoever alters a row by hand might, who knows of the hash.
REHASH = """
    ALTER TABLE closings DISABLE TRIGGER for_good;
    UPDATE closings SET hash = closing_hash(closings);
    ALTER TABLE closings ENABLE TRIGGER for_good
"""


def close(world: World, position: int, off: Decimal | int = 0) -> int:
    """Close the rides up to a position, with a sum that is wrong by `off`; returns the number."""
    [number] = one_row(world.connection.execute(CLOSE, {"position": position, "off": off}))
    world.connection.execute(REHASH, prepare=False)
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
