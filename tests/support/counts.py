"""The counts of readers, as they are in Postgres."""

from decimal import Decimal
from typing import NamedTuple

from tests.support.world import World

COUNTS = """
    SELECT gaps_healed, records_healed, distance_healed, resends_skipped, entries_set_aside,
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
