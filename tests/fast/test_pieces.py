"""What the nightly job adds up, against the same rides added up one by one."""

from decimal import Decimal

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from analytics.ledger import Ledger
from analytics.look import Look
from analytics.pieces import BLOCK, between
from analytics.result import Compared, Tally
from analytics.votes import Sums
from tests.support.copies import Ride, cut, digests_of, ledger_of, looks_at, one_by_one
from tests.support.properties import always, briefly

# Near the ends of blocks, where a cut may be wrong by one.
IDS = st.builds(
    lambda block, offset: max(1, block * BLOCK + offset), st.integers(0, 3), st.integers(-2, 3)
)
MILLIMETRES = st.integers(1, 10**12)
RIDES = st.lists(
    st.builds(lambda id_, mm: Ride(id_, Decimal(mm).scaleb(-3)), IDS, MILLIMETRES),
    unique_by=lambda ride: ride.id,
).map(sorted)


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
    """Some nights; then a total at any ride, from whole blocks and the pieces of the new ones."""
    ledger = Ledger()
    for upto in nights:
        new = [ride for ride in rides if ledger.position < ride.id <= upto]
        digests = digests_of([ride for ride in rides if ride.id <= upto])
        ledger = ledger.extended(upto, cut(new), digests)
    counted = [ride for ride in rides if ride.id <= ledger.position]
    assert ledger == ledger_of(counted, ledger.position)
    assert ledger == msgspec.json.decode(msgspec.json.encode(ledger), type=Ledger)
    assert ledger.total == one_by_one(rides, 0, ledger.position)
    fresh = [ride for ride in rides if ride.id > ledger.position]
    pieces = cut(fresh, [mark - 1, mark, ledger.position])
    sums = Sums(ledger, pieces, looks_at(ledger, counted, counted, [mark - 1, mark]))
    assert sums.upto(mark) == one_by_one(rides, 0, mark)
    assert sums.of([mark]) == one_by_one(rides, mark - 1, mark)
    for block in ledger.blocks:
        within = [ride for ride in rides if block.after < ride.id <= block.upto]
        assert (block.tally, block.first, block.last) == (
            one_by_one(rides, block.after, block.upto), within[0].id, within[-1].id,
        )  # fmt: skip
        assert ledger.block_of(block.upto) == ledger.block_of(block.after + 1) == block


@always
@given(RIDES, RIDES, RIDES, IDS, st.sets(IDS), st.sets(IDS))
def test_a_total_has_the_rides_of_each_block_as_whoever_is_right_of_it_has_them(
    postgres: list[Ride],
    warehouse: list[Ride],
    new: list[Ride],
    mark: int,
    looked_at: set[int],
    held: set[int],
) -> None:
    """All of them may differ; a block at which nobody looks is what the ledger says."""
    base = 2 * BLOCK
    known = [ride for ride in warehouse if ride.id <= base]
    ledger = Ledger().extended(base, cut(known))
    new = [ride for ride in new if ride.id > base]

    def is_in(look: Look, ids: set[int]) -> bool:
        return any(look.after < id_ <= look.upto for id_ in ids)

    looks = looks_at(ledger, postgres, known, [mark])
    looks = [look for look in looks if is_in(look, {mark, *looked_at})]
    theirs = [look.after for look in looks if look.after < mark and is_in(look, held)]
    mine = {look.after for look in looks} - {*theirs}
    exact = one_by_one(new, base, mark)
    for block in ledger.blocks:
        copy = postgres if block.after in mine else known
        exact = exact.plus(one_by_one(copy, block.after, min(block.upto, max(mark, block.after))))
    assert Sums(ledger, cut(new, [mark, base]), looks).upto(mark, theirs) == exact


@always
@given(MILLIMETRES, MILLIMETRES, st.booleans(), st.integers(0, 2), st.integers(0, 2))
def test_a_total_is_right_only_if_it_is_exact_in_both_sums_and_about_rides_that_were_sent(
    claimed: int, exact: int, stray: bool, rides: int, exact_rides: int
) -> None:
    sums = Decimal(claimed), Decimal(exact)
    consumer = Compared("consumer0", 1, *sums, stray, rides, exact_rides)
    assert consumer.drift == claimed - exact
    assert consumer.wrong == (stray or claimed != exact or rides != exact_rides)
    assert not Compared("consumer0", 1, Decimal(exact), Decimal(exact), False, 7, 7).wrong


def test_a_sum_of_more_digits_than_a_decimal_has_is_exact() -> None:
    """Those of Python's own context are 28."""
    large = Tally(1, Decimal("9" * 30))
    assert large.plus(Tally(1, Decimal("0.001"))) == Tally(2, Decimal("9" * 30 + ".001"))
