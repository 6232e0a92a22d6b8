"""The counts of readers, as they are in Postgres."""

from decimal import Decimal
from typing import NamedTuple

from tests.support.world import World

COUNTS = """
    SELECT gaps_healed, rides_healed, distance_healed, resends_skipped, entries_set_aside,
           crashes_injected, resets_applied
    FROM checkpoints WHERE kind = %s AND name = %s
"""


class Counts(NamedTuple):
    """The counts of a checkpoint; the distance is in metres."""

    gaps: int = 0
    rides: int = 0
    distance: Decimal = Decimal(0)
    skipped: int = 0
    set_aside: int = 0
    crashes: int = 0
    resets: int = 0


def counts(world: World, name: str = "consumer0", kind: str = "total") -> Counts:
    return Counts(*(world.connection.execute(COUNTS, [kind, name]).fetchone() or ()))


def lose(world: World, *rides: int) -> Decimal:
    """Delete the entries of these rides from the log; returns the rides' metres."""
    log = world.log()
    for entry, record in zip(log.read("0-0", 1_000_000), world.records(), strict=True):
        if record.id in rides:
            log.redis.xdel(log.name, entry.redis_id)
    [(distance,)] = world.connection.execute(
        "SELECT coalesce(sum(distance), 0) FROM rides WHERE id = ANY(%s)", [list(rides)]
    )
    return Decimal(distance)
