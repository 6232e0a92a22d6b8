"""The rollup: every minute is right for all rides up to `complete_to`, whatever happens."""

from tests.support.rollup import (
    complete_to,
    hurry,
    is_complete,
    kept,
    lead,
    send,
    send_at,
)
from tests.support.world import World


def test_rides_are_in_their_minutes_to_the_millimetre(world: World) -> None:
    send_at(
        world,
        ("2026-03-01 10:00:00Z", "0.001"),
        ("2026-03-01 10:00:59.999999Z", "999999999.999"),
        ("2026-03-01 10:01:00Z", "3"),
        ("2026-03-01 12:07:30+02:30", "4"),
        ("0044-03-15 12:00:00Z BC", "5"),
    )
    leading = lead(world)
    hurry(leading)
    assert is_complete(world)
    assert [(rides, str(distance)) for _, rides, distance in kept(world)] == [
        (1, "5.000"),
        (1, "4.000"),
        (2, "1000000000.000"),
        (1, "3.000"),
    ]
    send(world, 6)
    hurry(leading)
    assert is_complete(world)
    assert complete_to(world) == 6
