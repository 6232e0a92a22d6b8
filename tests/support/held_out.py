"""Records that a consumer holds out, as its reader leaves them."""

from tests.support.world import World

KEEP = """
    INSERT INTO held_out_records (kind, name, position, type, reason)
    VALUES (%s, %s, %s, %s, %s)
"""
LACK_RIDE = """
    UPDATE consumer_states SET rides = rides - 1, total_distance = total_distance - (
        SELECT distance FROM rides WHERE id = %s
    ) WHERE name = %s
"""
LACK_RATING = """
    UPDATE rating_sums SET ratings = ratings - 1, stars = stars - (
        SELECT stars FROM ratings WHERE id = %s
    ) WHERE name = %s
"""


def note(
    world: World,
    name: str,
    position: int,
    kind: str = "total",
    type_: str = "ride.create",
    reason: str = "too long",
) -> None:
    """The row alone: whatever the consumer has counted."""
    world.connection.execute(KEEP, [kind, name, position, type_, reason])


def lack(world: World, name: str, position: int, kind: str = "total") -> None:
    """The state alone: a consumer has not counted a record."""
    statement = LACK_RATING if kind == "ratings" else LACK_RIDE
    world.connection.execute(statement, [position, name])


def hold_out(world: World, name: str, *rides: int) -> None:
    """A total lacks these rides, and says so."""
    for ride in rides:
        lack(world, name, ride)
        note(world, name, ride)
