"""Adding up rides in Spark, exactly.

The rides are cut wherever a total is wanted: after every BLOCK of ids, and at any further marks.
The result is a short list of pieces, none of which lies across a cut, so that every total up to a
mark is a sum of whole pieces.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from analytics.result import Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def pieces(rides: "DataFrame", marks: Sequence[int] = ()) -> list[Piece]:
    """The pieces of `rides` between cuts, which include `marks`; in order of id."""
    return sorted(Piece(*row) for row in by_piece(rides, marks).collect())


def by_piece(rides: "DataFrame", marks: Sequence[int] = ()) -> "DataFrame":
    """Add up `rides` (id, distance) between cuts: first, last, rides, distance.

    The ride at a mark counts as below it. A piece has at most BLOCK rides, so its sum fits the
    decimal that Spark uses for it, of 22 digits; if it ever did not, Spark would raise an error.
    """
    from pyspark.sql import functions as f

    block = f.expr(f"(id - 1) div {BLOCK}")
    segment = f.expr(marks_below(sorted(set(marks))))
    return (
        rides.groupBy(block.alias("block"), segment.alias("segment"))
        .agg(
            f.min("id").alias("first"),
            f.max("id").alias("last"),
            f.count("id").alias("rides"),
            f.sum("distance").alias("distance"),
        )
        .select("first", "last", "rides", "distance")
    )


def marks_below(marks: Sequence[int], first: int = 0) -> str:
    """SQL for how many of the ascending `marks` an id lies past, and `first`: a binary search.

    Each record that is held out adds two marks; one term for each would be too deep for Spark.
    """
    if not marks:
        return str(first)
    half = len(marks) // 2
    above = marks_below(marks[half + 1 :], first + half + 1)
    return f"CASE WHEN id > {marks[half]} THEN {above} ELSE {marks_below(marks[:half], first)} END"


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
