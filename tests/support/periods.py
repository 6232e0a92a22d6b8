"""Rides of three days, long ago."""

import random

from tests.support.attacks import BLOCK, PLACES, all_have_counted
from tests.support.books import Books
from tests.support.world import drain, take

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


def three_days(books: Books) -> None:
    """Ten rides on each of DAYS, at noon, in a block each; all have them, and a run agrees."""
    chance, world = random.Random(1), books.world
    for day in DAYS:
        metres = (f"{chance.randrange(10**6, 10**9) / 1000:.3f}" for _ in range(PLACES))
        take(world.connection, *metres, moments=[f"{day} 12:00Z"] * PLACES)
        if day != DAYS[-1]:
            books.skip_ids(BLOCK - PLACES)
    drain(world.streamer())
    all_have_counted(books)
    assert books.run().agrees
