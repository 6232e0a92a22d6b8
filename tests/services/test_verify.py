"""The warehouse against Postgres: ledger, files and rides must all say the same."""

from decimal import Decimal

import pytest

from analytics.ledger import Block
from analytics.pieces import Piece
from analytics.proofs.warehouse import against_postgres
from analytics.result import Mismatch, Tally
from rocket_rides.cells import CELL_SIZE
from tests.support.world import World

PUT = "INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (%s, 5)"
TRUE, WRONG = Tally(3, Decimal(6)), Tally(3, Decimal("6.001"))


@pytest.fixture
def rides(world: World) -> World:
    world.take(1, 2, 3, 4)
    return world


def first_block(rides: World, count: int = 3, distance: Decimal = TRUE.distance) -> Block:
    """The ledger's first, which begins at 0 in whatever cell."""
    return Block(0, rides.start + 3, rides.start + 1, rides.start + 3, count, distance)


def pieces(rides: World, last: Decimal = Decimal(3)) -> list[Piece]:
    one, two, three = (rides.start + ride for ride in (1, 2, 3))
    return [Piece(one, two, 2, Decimal(3)), Piece(three, three, 1, last)]


def test_a_warehouse_that_is_right_is_said_to_be_right(rides: World) -> None:
    assert against_postgres(rides.connection, [first_block(rides)], pieces(rides)) == []


def test_a_file_that_was_changed_is_noticed(rides: World) -> None:
    changed = pieces(rides, last=Decimal("3.001"))
    [mismatch] = against_postgres(rides.connection, [first_block(rides)], changed)
    assert mismatch == Mismatch(rides.start, rides.start + 3, WRONG, TRUE)


def test_what_differs_in_the_first_block_begins_at_the_cells_first_ride(
    world: World,
) -> None:
    start = 89 * CELL_SIZE
    world.connection.execute(PUT, [start + 7])
    block = Block(0, start + 8, start + 7, start + 7, 1, Decimal(5))
    [mismatch] = against_postgres(world.connection, [block], [])
    assert (mismatch.after, mismatch.upto) == (start, start + 8)


def test_a_ledger_that_was_changed_is_noticed(rides: World) -> None:
    changed = first_block(rides, distance=WRONG.distance)
    [mismatch] = against_postgres(rides.connection, [changed], pieces(rides))
    assert mismatch == Mismatch(rides.start, rides.start + 3, WRONG, TRUE)


@pytest.mark.parametrize("ride", [1, 3])
def test_a_ride_that_took_anothers_place_is_noticed(rides: World, ride: int) -> None:
    """At either end, with the same sum and number."""
    before = first_block(rides, 2, Decimal(6) - ride)
    files = [Piece(rides.start + 1, rides.start + 3, 2, Decimal(6) - ride)]
    rides.connection.execute("DELETE FROM rides WHERE id = %s", [rides.start + ride])
    [mismatch] = against_postgres(rides.connection, [before], files)
    assert mismatch.difference == Tally()
