"""Adding up rides, exactly.

The rides are cut wherever a total is wanted: after every BLOCK of ids, and at any further marks.
The result is a short list of pieces, none of which lies across a cut, so that every total up to a
mark is a sum of whole pieces.
"""

from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from typing import NamedTuple

from analytics.result import Tally

BLOCK = 100_000  # ids


class Piece(NamedTuple):
    """The rides between two cuts, from the id `first` to the id `last`."""

    first: int
    last: int
    rides: int
    distance: Decimal

    @property
    def tally(self) -> Tally:
        return Tally(self.rides, self.distance)


def piece(first: int, last: int, rides: int, millimetres: int) -> Piece:
    """A piece as Spark's tasks add it up (`Rows.sums`)."""
    return Piece(first, last, rides, Decimal(millimetres).scaleb(-3))


def between(pieces: Iterable[Piece], after: int, upto: int) -> Tally:
    """The sum of the pieces with `after < id <= upto`; both ends must be cuts."""
    return total(piece.tally for piece in pieces if after < piece.first and piece.last <= upto)


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum of all tallies."""
    return reduce(Tally.plus, tallies, Tally())


def number_of(position: int) -> int:
    """The number of the BLOCK of ids that a position is in."""
    return (position - 1) // BLOCK


def by_block(pieces: Iterable[Piece]) -> dict[int, list[Piece]]:
    """The pieces of each BLOCK of ids that has rides, in order."""
    blocks: dict[int, list[Piece]] = {}
    for piece in sorted(pieces):
        blocks.setdefault(number_of(piece.first), []).append(piece)
    return blocks
