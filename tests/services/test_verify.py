"""The warehouse against Postgres: ledger, files and rides must all say the same."""

from decimal import Decimal

import pytest

from analytics.ledger import Block
from analytics.pieces import Piece
from analytics.proofs.warehouse import against_postgres
from analytics.result import Mismatch, Tally
from tests.support.world import World

BLOCK = Block(0, 3, 1, 3, 3, Decimal(6))
PIECES = [Piece(1, 2, 2, Decimal(3)), Piece(3, 3, 1, Decimal(3))]
TRUE, WRONG = Tally(3, Decimal(6)), Tally(3, Decimal("6.001"))


@pytest.fixture
def rides(world: World) -> World:
    world.take(1, 2, 3, 4)
    return world


def test_a_warehouse_that_is_right_is_said_to_be_right(rides: World) -> None:
    assert against_postgres(rides.connection, [BLOCK], PIECES) == []


def test_a_file_that_was_changed_is_noticed(rides: World) -> None:
    changed = [PIECES[0], PIECES[1]._replace(distance=Decimal("3.001"))]
    [mismatch] = against_postgres(rides.connection, [BLOCK], changed)
    assert mismatch == Mismatch(0, 3, WRONG, TRUE)


def test_a_ledger_that_was_changed_is_noticed(rides: World) -> None:
    changed = Block(0, 3, 1, 3, 3, WRONG.distance)
    assert against_postgres(rides.connection, [changed], PIECES) == [Mismatch(0, 3, WRONG, TRUE)]


@pytest.mark.parametrize("ride", [1, 3])
def test_a_ride_that_took_anothers_place_is_noticed(rides: World, ride: int) -> None:
    """At either end, with the same sum and number."""
    before = Block(0, 3, 1, 3, 2, Decimal(6) - ride)
    pieces = [Piece(1, 3, 2, Decimal(6) - ride)]
    rides.connection.execute("DELETE FROM rides WHERE id = %s", [ride])
    [mismatch] = against_postgres(rides.connection, [before], pieces)
    assert mismatch.difference == Tally()
