"""Who is right of a block: every row of the table in `analytics.votes`, and whatever is altered.

A history has old rides, which both copies and the ledger have, and fresh ones, which only Postgres
has. One party is altered: it never wins.
"""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.pieces import BLOCK
from analytics.result import Compared
from analytics.votes import (
    Counted,
    Right,
    Standing,
    Sums,
    by_ledger,
    confirmed_upto,
    decide,
    denied,
    may_be_reset,
)
from tests.support.copies import Ride, cut, ledger_of, looks_at, one_by_one, rides
from tests.support.properties import always

BOTH, POSTGRES, WAREHOUSE, NOBODY = Right

TRUE = (1, 2, 3)  # the metres of rides
WRONG = (1, 2, 4)
OTHER = (9, 2, 3)
SWAPPED = (2, 1, 3)  # adds up to the same, and has as many rides
SPLIT = (1, 2, 1, 2)  # adds up to the same, and has more
GONE = (1, 2, 0)
UNKNOWN = None

# Postgres, the warehouse, the ledger, the rides that each total has, who is right.
CASES = [
    (TRUE, TRUE, TRUE, [TRUE], BOTH),
    (TRUE, WRONG, UNKNOWN, [TRUE], POSTGRES),
    (WRONG, TRUE, UNKNOWN, [TRUE], WAREHOUSE),
    (GONE, TRUE, UNKNOWN, [TRUE], WAREHOUSE),
    (WRONG, OTHER, UNKNOWN, [TRUE], NOBODY),
    (WRONG, OTHER, TRUE, [], NOBODY),
    (SWAPPED, WRONG, TRUE, [TRUE], NOBODY),  # it fits the sums of one, and the ledger neither
    # A total decides by its rides, too.
    (SPLIT, TRUE, UNKNOWN, [TRUE], WAREHOUSE),
    (TRUE, SPLIT, UNKNOWN, [TRUE], POSTGRES),
    # No total stands past the block, or both versions have the same sums.
    (TRUE, WRONG, TRUE, [], POSTGRES),
    (WRONG, TRUE, TRUE, [], WAREHOUSE),
    (TRUE, SWAPPED, TRUE, [TRUE], POSTGRES),
    (SWAPPED, TRUE, TRUE, [TRUE], WAREHOUSE),
    (SWAPPED, TRUE, UNKNOWN, [TRUE], NOBODY),
    (TRUE, WRONG, UNKNOWN, [], NOBODY),
    # Both copies are the same, and not what they were.
    (WRONG, WRONG, TRUE, [], NOBODY),
    (WRONG, WRONG, UNKNOWN, [], BOTH),
    # One total is wrong by itself; two contradict each other; one contradicts the ledger.
    (TRUE, WRONG, UNKNOWN, [OTHER, TRUE], POSTGRES),
    (WRONG, TRUE, UNKNOWN, [OTHER, TRUE], WAREHOUSE),
    (TRUE, WRONG, UNKNOWN, [WRONG, TRUE], NOBODY),
    (WRONG, TRUE, TRUE, [WRONG], NOBODY),
]


@pytest.mark.proves("witnesses")
@pytest.mark.parametrize(("postgres", "warehouse", "proven", "totals", "right"), CASES)
def test_two_witnesses_decide(
    postgres: Sequence[int],
    warehouse: Sequence[int],
    proven: Sequence[int] | None,
    totals: list[Sequence[int]],
    right: Right,
) -> None:
    ledger = ledger_of(rides(*TRUE), BLOCK)
    looks = looks_at(ledger, rides(*postgres), rides(*warehouse))
    digest = ledger_of(rides(*proven), BLOCK).blocks[0].digest if proven else None
    standing = [Standing(BLOCK, one_by_one(rides(*metres), 0, BLOCK)) for metres in totals]
    assert decide(looks, {0: digest}, standing, Sums(ledger, [], looks)) == {0: right}
    if not totals:
        assert by_ledger(looks[0], digest) == right


# The ride that the total holds out, Postgres, the warehouse, who is right.
HELD_OUT = [
    (1, TRUE, (1, 9, 3), POSTGRES),  # by the rides that it has counted
    (1, (1, 9, 3), TRUE, WAREHOUSE),
    (2, TRUE, (1, 9, 3), NOBODY),  # that one is what it lacks
    (2, (1, 9, 3), TRUE, NOBODY),
    (2, (1, 0, 3), TRUE, NOBODY),  # its row is gone
    (4, TRUE, (1, 9, 3), POSTGRES),  # no such ride
    (4, (1, 9, 3), TRUE, WAREHOUSE),
]


@pytest.mark.parametrize(("lacking", "postgres", "warehouse", "right"), HELD_OUT)
def test_a_total_is_no_witness_of_a_ride_that_it_holds_out(
    lacking: int, postgres: Sequence[int], warehouse: Sequence[int], right: Right
) -> None:
    ledger = ledger_of(rides(*TRUE), BLOCK)
    looks = looks_at(ledger, rides(*postgres), rides(*warehouse), [lacking - 1, lacking])
    counted = [ride for ride in rides(*TRUE) if ride.id != lacking]
    total = Standing(BLOCK, one_by_one(counted, 0, BLOCK), [lacking])
    assert decide(looks, {}, [total], Sums(ledger, [], looks)) == {0: right}


def test_a_total_that_has_counted_what_it_says_it_holds_out_is_no_witness() -> None:
    ledger = ledger_of(rides(*TRUE), BLOCK)
    looks = looks_at(ledger, rides(*WRONG), rides(*TRUE), [0, 1])
    total = Standing(BLOCK, one_by_one(rides(*TRUE), 0, BLOCK), [1])
    assert decide(looks, {}, [total], Sums(ledger, [], looks)) == {0: NOBODY}


def test_a_total_below_a_block_says_nothing_of_it() -> None:
    old = [Ride(1, Decimal(1)), Ride(BLOCK + 1, Decimal(2))]
    ledger = ledger_of(old, 2 * BLOCK)
    altered = [old[0], old[1]._replace(distance=Decimal(3))]
    looks = looks_at(ledger, altered, old, [1])
    sums = Sums(ledger, [], looks)
    for position, right in [(1, NOBODY), (BLOCK, NOBODY), (2 * BLOCK, WAREHOUSE)]:
        total = Standing(position, one_by_one(old, 0, position))
        assert decide(looks, {}, [total], sums) == {0: BOTH, BLOCK: right}


def test_a_total_below_the_first_ride_has_counted_none() -> None:
    """As one of a cell does that has not begun, whether or not a run has looked at its block."""
    of = [Ride(7, Decimal(2))]
    ledger = ledger_of(of, BLOCK)
    for looks in ([], looks_at(ledger, of, of, [6])):
        assert [Sums(ledger, [], looks).upto(place).rides for place in (6, 7)] == [0, 1]


def test_a_change_of_fresh_rides_hides_none_of_old_ones() -> None:
    """The ledger knows what the old ones were, and nobody but Postgres has the fresh ones."""
    taken, in_postgres = rides(*TRUE, 2), rides(*WRONG, 1)
    ledger = ledger_of(taken[:3], 3)
    looks = looks_at(ledger, in_postgres, taken[:3])
    sums = Sums(ledger, cut(in_postgres[3:]), looks)
    total = Standing(4, one_by_one(taken, 0, 4))
    assert sums.upto(4) == total.tally
    assert decide(looks, {0: ledger.blocks[0].digest}, [total], sums) == {0: NOBODY}


# Around the end of a block; a ride that is not there can be added.
IDS = st.builds(lambda end, offset: end * BLOCK + offset, st.integers(0, 2), st.integers(1, 3))
RIDES = st.lists(
    st.builds(Ride, IDS, st.integers(1, 3).map(Decimal), st.just(0)), unique_by=lambda ride: ride.id
).map(sorted)
CHANGES = st.dictionaries(IDS, st.integers(0, 3), min_size=1, max_size=3)


def altered(of: Sequence[Ride], changes: dict[int, int]) -> list[Ride]:
    """With other distances for some ids; 0 deletes the ride, or adds none."""
    all_ = {ride.id: ride for ride in of}
    all_ |= {id_: Ride(id_, Decimal(metres)) for id_, metres in changes.items()}
    return sorted(ride for ride in all_.values() if ride.distance)


@always
@given(RIDES, CHANGES, st.sets(IDS, max_size=2), st.sampled_from(Right), st.booleans(), IDS)
def test_whoever_alone_was_altered_is_never_right(
    taken: list[Ride],
    changes: dict[int, int],
    places: set[int],
    who: Right,
    proven: bool,
    base: int,
) -> None:
    """BOTH stands for one of the totals. Fresh rides may be altered, too, where a ledger is."""
    old = [ride for ride in taken if ride.id <= base]
    if not proven:
        taken = old
        changes = {id_: metres for id_, metres in changes.items() if id_ <= base}
    ledger = ledger_of(old, base)
    copies = {who: altered(taken, changes)}
    in_postgres, in_files = copies.get(POSTGRES, taken), copies.get(WAREHOUSE, old)
    looks = looks_at(ledger, in_postgres, [ride for ride in in_files if ride.id <= base], places)
    fresh = cut([ride for ride in in_postgres if ride.id > base], sorted({*places, base}))
    totals = [Standing(place, one_by_one(taken, 0, place)) for place in sorted(places)]
    if who is BOTH and totals:
        totals[0] = Standing(totals[0].position, totals[0].tally._replace(distance=Decimal(7)))
    digests = {look.after: block.digest for look, block in zip(looks, ledger.blocks, strict=True)}
    sides = decide(looks, digests if proven else {}, totals, Sums(ledger, fresh, looks))
    assert sides.keys() == digests.keys()
    for look in looks:
        if look.postgres == look.warehouse:
            assert sides[look.after] is BOTH
        else:
            assert sides[look.after] is not who
            if proven and not fresh:
                assert sides[look.after] is (WAREHOUSE if who is POSTGRES else POSTGRES)


def a_total(position: int, rides_off: int = 0, off: int = 0) -> Counted:
    return Counted(position, (rides_off, Decimal(off)), position)


def compared(position: int, off: int = 0) -> Compared:
    return Compared("a", position, Decimal(off), Decimal(0))


RIGHT = a_total(20)


@pytest.mark.proves("second-witness")
@pytest.mark.parametrize(
    ("counted", "proven", "may"),
    [
        ([a_total(20, off=1), RIGHT], 0, True),  # another total has counted as Postgres says
        ([a_total(21, off=1), RIGHT], 0, False),  # but not the last ride
        ([a_total(20, off=1), RIGHT._replace(rows=0)], 0, False),
        ([a_total(20, off=1), RIGHT._replace(stray=True)], 0, False),
        ([a_total(20, off=1), RIGHT._replace(first_held_out=20)], 0, False),  # nobody knows of 20
        ([a_total(20, off=1), RIGHT._replace(first_held_out=20)], 20, True),
        ([a_total(19, off=1), RIGHT._replace(first_held_out=20)], 0, True),
        ([a_total(20, off=1)], 20, True),  # a total has agreed so far in an earlier run
        ([a_total(20, off=1)], 19, False),
        ([a_total(20, rides_off=1)], 0, False),  # as many records as were sent: not these rides
        ([a_total(20, off=1), a_total(20, off=2)], 20, True),
        ([a_total(20, off=1), a_total(19, off=1)], 20, False),  # the judge is suspect
        ([a_total(20, rides_off=1), a_total(19, rides_off=1)], 20, False),
        ([a_total(20, off=1), a_total(19, off=1), RIGHT], 0, True),
    ],
)
def test_a_total_is_reset_only_if_a_second_witness_confirms_that(
    counted: list[Counted], proven: int, may: bool
) -> None:
    assert may_be_reset(counted, confirmed_upto(counted, proven))[0] is may


@pytest.mark.parametrize(
    ("counted", "is_denied"),
    [
        ([compared(21, off=1)], True),
        ([compared(22), compared(21, off=1)], True),
        ([compared(21)], False),
        ([compared(20, off=1)], False),  # it has counted none of them
        ([compared(21)._replace(stray=True)], False),  # it has counted what there is not
        ([compared(21, off=1)._replace(recounts=True)], False),
        ([], False),
    ],
)
def test_rides_after_20_are_denied_where_somebody_has_counted_others(
    counted: list[Compared], is_denied: bool
) -> None:
    assert denied(counted, 20) is is_denied


@always
@given(RIDES, CHANGES, st.sets(IDS, min_size=1, max_size=3), IDS)
def test_no_total_is_reset_to_what_postgres_alone_says(
    taken: list[Ride], changes: dict[int, int], places: set[int], proven: int
) -> None:
    """Rides past the last that a run has proven are longer, in Postgres alone."""
    more = {id_: by for id_, by in changes.items() if id_ > proven}
    in_postgres = [ride._replace(distance=ride.distance + more.get(ride.id, 0)) for ride in taken]
    counted = []
    for place in sorted(places):
        mine, exact = one_by_one(taken, 0, place), one_by_one(in_postgres, 0, place)
        off = mine.rides - exact.rides, mine.distance - exact.distance
        counted.append(Counted(place, off, exact.rides))
    for each, may in zip(
        counted, may_be_reset(counted, confirmed_upto(counted, proven)), strict=True
    ):
        assert each.agrees or not may
