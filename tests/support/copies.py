"""Rides in two copies, and what a run sees of them: pieces, a ledger, looks. No server has them."""

from array import array
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from analytics.ledger import NEVER, Ledger
from analytics.look import Look
from analytics.pieces import BLOCK, Piece
from analytics.result import Tally
from analytics.rows import Rows, differences


class Ride(NamedTuple):
    """A ride. Its time is in microseconds since 1970."""

    id: int
    distance: Decimal
    micros: int = 0


def rides(*metres: int | str, after: int = 0) -> list[Ride]:
    """One ride after the other; a distance of 0 leaves one out."""
    each = enumerate(map(Decimal, metres), after + 1)
    return [Ride(id_, distance) for id_, distance in each if distance]


def one_by_one(of: Iterable[Ride], after: int, upto: int) -> Tally:
    """The sum of the rides with `after < id <= upto`."""
    within = [ride.distance for ride in of if after < ride.id <= upto]
    return Tally(len(within), sum(within, Decimal(0)))


def as_rows(of: Iterable[Ride]) -> Rows:
    numbers = [(ride.id, ride.micros, int(ride.distance.scaleb(3))) for ride in sorted(of)]
    return Rows(*(array("q", [each[place] for each in numbers]) for place in range(3)))


def cut(of: Sequence[Ride], marks: Sequence[int] = ()) -> list[Piece]:
    """The pieces of these rides, as Spark cuts them."""
    found: dict[tuple[int, int], list[Ride]] = {}
    for ride in of:
        segment = sum(ride.id > mark for mark in marks)
        found.setdefault(((ride.id - 1) // BLOCK, segment), []).append(ride)
    return sorted(
        Piece(piece[0].id, piece[-1].id, *one_by_one(piece, 0, piece[-1].id))
        for piece in found.values()
    )


def ledger_of(of: Sequence[Ride], upto: int, now: datetime = NEVER) -> Ledger:
    """The ledger of a run that has read all rides up to there."""
    return Ledger().extended(upto, cut(of), digests_of(of), now)


def digests_of(of: Sequence[Ride]) -> dict[int, str]:
    """The digest of each block, by its number."""
    in_rows, numbers = as_rows(of), {(ride.id - 1) // BLOCK for ride in of}
    return {each: in_rows.digest(each * BLOCK, (each + 1) * BLOCK) for each in numbers}


def looks_at(
    ledger: Ledger, postgres: Sequence[Ride], warehouse: Sequence[Ride], marks: Iterable[int] = ()
) -> list[Look]:
    """What a run sees of each block of the ledger, which has no rides since."""
    mine, theirs, marks = as_rows(postgres), as_rows(warehouse), [*marks]
    found = []
    for block in ledger.blocks:
        after, upto = block.after, block.upto
        ours, copied = (
            Rows(*(column[len(each.upto(after).ids) :] for column in each.upto(upto)))
            for each in (mine, theirs)
        )
        digests = ours.digest(after, upto), copied.digest(after, upto)
        ends = [after, *sorted(mark for mark in {*marks} if after < mark < upto), upto]
        of_postgres, of_warehouse = (
            tuple(piece for one, two in pairwise(ends) for piece in pieces_of(each, one, two))
            for each in (postgres, warehouse)
        )
        differ = differences(ours, copied)
        found.append(Look(after, upto, upto, *digests, *digests, of_postgres, of_warehouse, differ))
    return found


def pieces_of(of: Iterable[Ride], after: int, upto: int) -> list[Piece]:
    """All rides between two cuts as one piece, if there are any."""
    within = [ride.id for ride in of if after < ride.id <= upto]
    return [Piece(within[0], within[-1], *one_by_one(of, after, upto))] if within else []
