"""What the nightly job adds up, against the same rides added up one by one."""

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from analytics.ledger import Ledger
from analytics.pieces import BLOCK, Piece, between, total
from analytics.proofs.warehouse import against_all
from analytics.result import Compared, Tally
from tests.support.properties import always, briefly

# Near the ends of blocks, where a cut may be wrong by one.
IDS = st.builds(
    lambda block, offset: max(1, block * BLOCK + offset), st.integers(0, 3), st.integers(-2, 3)
)
MILLIMETRES = st.integers(1, 10**12)


class Ride(NamedTuple):
    id: int
    distance: Decimal


RIDES = st.lists(
    st.builds(
        lambda id_, mm: Ride(id_, Decimal(mm).scaleb(-3)),
        IDS, MILLIMETRES,
    ),
    unique_by=lambda ride: ride.id,
).map(sorted)  # fmt: skip


def one_by_one(rides: Sequence[Ride], after: int, upto: int) -> Tally:
    within = [ride.distance for ride in rides if after < ride.id <= upto]
    return Tally(len(within), sum(within, Decimal(0)))


def cut(rides: Sequence[Ride], marks: Sequence[int] = ()) -> list[Piece]:
    """The pieces of these rides, as Spark cuts them."""
    found: dict[tuple[int, int], list[Ride]] = {}
    for ride in rides:
        segment = sum(ride.id > mark for mark in marks)
        found.setdefault(((ride.id - 1) // BLOCK, segment), []).append(ride)
    return sorted(
        Piece(piece[0].id, piece[-1].id, *one_by_one(piece, 0, piece[-1].id))
        for piece in found.values()
    )


@briefly
@given(RIDES, IDS, IDS)
def test_rides_between_two_cuts_are_a_sum_of_cells(rides: list[Ride], one: int, other: int) -> None:
    after, upto = sorted([one, other])
    pieces = cut(rides, [after, upto])
    assert between(pieces, after, upto) == one_by_one(rides, after, upto)
    assert between(pieces, 0, after) == one_by_one(rides, 0, after)


@briefly
@given(RIDES, st.lists(IDS, unique=True, max_size=4).map(sorted), IDS)
def test_whatever_the_nights_were_every_total_is_that_of_the_rides(
    rides: list[Ride], nights: list[int], mark: int
) -> None:
    """Some nights; then a total at any ride, from whole blocks and the pieces of one more."""
    ledger = Ledger()
    for upto in nights:
        new = [ride for ride in rides if ledger.position < ride.id <= upto]
        ledger = ledger.extended(upto, cut(new))
    counted = [ride for ride in rides if ride.id <= ledger.position]
    assert ledger == Ledger().extended(ledger.position, cut(counted))
    assert ledger == msgspec.json.decode(msgspec.json.encode(ledger), type=Ledger)
    assert ledger.total == one_by_one(rides, 0, ledger.position)
    ends = sorted({mark, ledger.position, *(block.upto for block in ledger.blocks)})
    assert ledger.upto(mark, cut(rides, ends)) == one_by_one(rides, 0, mark)
    for block in ledger.blocks:
        within = [ride for ride in rides if block.after < ride.id <= block.upto]
        assert (block.tally, block.first, block.last) == (
            one_by_one(rides, block.after, block.upto), within[0].id, within[-1].id,
        )  # fmt: skip
        assert ledger.block_of(block.upto) == ledger.block_of(block.after + 1) == block
    if ledger.blocks:
        sample = ledger.sample(2, random.Random(mark))
        assert ledger.blocks[-1] in sample
        assert len(set(sample)) == len(sample) == min(2, len(ledger.blocks))


@briefly
@given(RIDES.filter(bool), st.data())
def test_a_warehouse_that_differs_in_a_ride_is_noticed(
    rides: list[Ride], data: st.DataObject
) -> None:
    upto = rides[-1].id
    assert against_all(cut(rides), cut([*rides, Ride(upto + 1, Decimal(1))],
                                       [upto]), upto) == []  # fmt: skip
    wrong = data.draw(st.sampled_from(rides))
    others = [ride for ride in rides if ride != wrong]
    for tampered in (others, [*others, wrong._replace(distance=wrong.distance + 1)]):
        [mismatch] = against_all(cut(sorted(tampered)), cut(rides), upto)
        assert mismatch.after < wrong.id <= mismatch.upto
        assert mismatch.difference.distance == (
            total(piece.tally for piece in cut(sorted(tampered))).distance
            - one_by_one(rides, 0, upto).distance
        )


@always
@given(MILLIMETRES, MILLIMETRES, st.booleans())
def test_a_total_is_right_only_if_it_is_exact_and_about_rides_that_were_sent(
    claimed: int, exact: int, stray: bool
) -> None:
    consumer = Compared("consumer0", 1, Decimal(claimed), Decimal(exact), stray)
    assert consumer.drift == claimed - exact
    assert consumer.wrong == (stray or claimed != exact)
    assert not Compared("consumer0", 1, Decimal(exact), Decimal(exact)).wrong


def test_a_sum_of_more_digits_than_a_decimal_has_is_exact() -> None:
    """Those of Python's own context are 28."""
    large = Tally(1, Decimal("9" * 30))
    assert large.plus(Tally(1, Decimal("0.001"))) == Tally(2, Decimal("9" * 30 + ".001"))
