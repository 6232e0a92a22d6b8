"""Rides as rows: the digest of a block, and in what two copies differ."""

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.rows import EMPTY, NAMED, NONE, Differences, Differing, Fields, Rows, differences
from tests.support.copies import Ride, as_rows, rides
from tests.support.properties import always

NUMBERS = st.integers(-(2**63), 2**63 - 1)
IN_ROWS = st.dictionaries(st.integers(1, 2**63 - 1), st.tuples(NUMBERS, NUMBERS), max_size=5).map(
    lambda of: sorted((id_, *numbers) for id_, numbers in of.items())
)
YEAR_1, YEAR_9999 = -62_135_596_800_000_000, 253_402_214_400_000_000
HOUR = 3_600_000_000  # microseconds
TAKEN = rides(1, 2, 3)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def of(numbers: list[tuple[int, ...]]) -> Rows:
    """As they are read: batch after batch."""
    read = EMPTY
    for id_, micros, millimetres in numbers:
        read = read.then(as_rows([Ride(id_, Decimal(millimetres).scaleb(-3), micros)]))
    return read


@always
@given(IN_ROWS, st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_a_digest_is_of_three_numbers_a_ride_of_eight_bytes_each_the_highest_first(
    numbers: list[tuple[int, ...]], one: int, other: int
) -> None:
    after, upto = sorted([one, other])
    within = [each for each in numbers if after < each[0] <= upto]
    packed = b"".join(struct.pack(">qqq", *each) for each in within)
    assert of(numbers).digest(after, upto) == sha256(packed).hexdigest()


@always
@given(IN_ROWS, st.integers(1, 2**63 - 1))
def test_what_is_cut_in_two_is_whole_again(numbers: list[tuple[int, ...]], at: int) -> None:
    whole = of(numbers)
    assert whole.upto(at).then(whole.beyond(at)) == whole
    sums = [
        (within[0][0], within[-1][0], len(within), sum(each[2] for each in within))
        for within in (
            [each for each in numbers if each[0] <= at],
            [each for each in numbers if each[0] > at],
        )
        if within
    ]
    assert list(whole.sums(0, [at, 2**63 - 1])) == sums


def change(id_: int, **fields: object) -> list[Ride]:
    """The rides as they were taken, but for one."""
    return [ride._replace(**fields) if ride.id == id_ else ride for ride in TAKEN]  # type: ignore[arg-type]


SWAPPED = rides(2, 1, 3)
MOVED = change(2, micros=HOUR)


@pytest.mark.parametrize(
    ("postgres", "warehouse", "ids", "gone"),
    [
        (change(2, distance=Decimal("2.001")), TAKEN, [2], 0),
        (SWAPPED, TAKEN, [1, 2], 0),
        (MOVED, TAKEN, [2], 0),
        (TAKEN[:2], TAKEN, [3], 1),
        (TAKEN, TAKEN[1:], [1], -1),
        (TAKEN, [*TAKEN, TAKEN[1]], [2], 1),  # twice in the files
        (TAKEN, [], [1, 2, 3], -3),
    ],
)
def test_whatever_differs_is_named_and_counted(
    postgres: list[Ride], warehouse: list[Ride], ids: list[int], gone: int
) -> None:
    found = differences(as_rows(postgres), as_rows(warehouse))
    assert (found.rides, [ride.id for ride in found.named], found.gone) == (len(ids), ids, gone)
    for ride in found.named:
        for side, copy in ((ride.postgres, postgres), (ride.warehouse, warehouse)):
            has = {each.id: each.distance for each in copy}
            assert (side and side.distance) == has.get(ride.id)
    other = differences(as_rows(warehouse), as_rows(postgres))
    assert other.key != found.key  # it says which side has what


def test_equal_copies_do_not_differ() -> None:
    assert differences(as_rows(TAKEN), as_rows(TAKEN)) == Differences()


def test_a_ride_is_told_as_a_person_reads_it_with_the_days_on_which_it_may_have_been() -> None:
    found = differences(as_rows(MOVED), as_rows(change(2, micros=-1)))
    now, then = Fields(datetime(1970, 1, 1, 1, tzinfo=UTC), Decimal(2)), Fields(
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), Decimal(2)
    )  # fmt: skip
    assert found.named == (Differing(2, now, then),)
    assert found.days == (date(1969, 12, 31), date(1970, 1, 1))


def test_few_are_named_and_the_key_is_of_all() -> None:
    mine = rides(*range(1, 21))
    one, other = (
        differences(as_rows([*mine[:19], mine[19]._replace(micros=micros)]), EMPTY)
        for micros in (1, 2)
    )
    assert one.rides == 20
    assert one.named == other.named
    assert len(one.named) == NAMED
    assert one.key != other.key


@pytest.mark.parametrize(
    ("at", "is_known"),
    [
        (datetime(1, 1, 1, tzinfo=UTC), False),
        (datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC), True),
        (datetime(9999, 12, 30, 23, 59, 59, tzinfo=UTC), True),
        (datetime(9999, 12, 31, tzinfo=UTC), False),
        (datetime.max.replace(tzinfo=UTC), False),  # past what a run writes: a stranger's
        (None, False),
    ],
)
def test_a_copy_knows_a_time_that_is_within_its_range_only(
    at: datetime | None, *, is_known: bool
) -> None:
    assert Fields(at, Decimal(1)).knows_its_time == is_known


@pytest.mark.parametrize(
    ("micros", "at"),
    [
        (NONE, None),  # NULL
        (YEAR_1, datetime(1, 1, 1, tzinfo=UTC)),
        (YEAR_9999, datetime(9999, 12, 31, tzinfo=UTC)),  # infinity, as it is read
        (2**63 - 1, datetime.max.replace(tzinfo=UTC)),
        (NONE + 1, datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_what_only_a_stranger_writes_stops_nobody(micros: int, at: datetime | None) -> None:
    strange = of([(1, micros, NONE)])
    [ride] = differences(of([(1, 0, 1000)]), strange).named
    assert ride == Differing(1, Fields(EPOCH, Decimal(1)), Fields(at, None))
    assert strange.digest(0, 1) == sha256(struct.pack(">qqq", 1, micros, NONE)).hexdigest()
