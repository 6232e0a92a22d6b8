"""Rides as rows: the digest of a block, and in what two copies of it differ.

A ride is three numbers of 64 bits: its id, its time in microseconds since 1970, and its distance in
millimetres. A block's digest is the SHA-256 of its rides in the order of their ids, each number as
eight bytes, the highest first. Postgres makes the same one (docs/reconcile.md has the statement).

For Spark's tasks, which need nothing of this project and no numpy.
"""

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

NONE = -(2**63)  # stands for a NULL, which only a stranger writes: no ride has this number
MOST = 2**63 - 1  # no ride has a higher number
NAMED = 10  # this many of the rides that differ are named
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# As `analytics.from_postgres` reads Postgres' infinity, and whatever else Python has no time for.
EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


class Fields(NamedTuple):
    """What one copy says of a ride: when it was taken, and its distance in metres."""

    created_at: datetime | None
    distance: Decimal | None

    @property
    def knows_its_time(self) -> bool:
        """Whether this is the ride's time: EARLIEST and LATEST stand for all beyond them, too."""
        return self.created_at is not None and EARLIEST < self.created_at < LATEST


class Differing(NamedTuple):
    """A ride on which Postgres and the warehouse disagree. A copy that lacks it has None."""

    id: int
    postgres: Fields | None
    warehouse: Fields | None  # the first one, if it has several of this id


class Differences(NamedTuple):
    """In how many rides two copies differ, and which they are."""

    rides: int = 0
    named: tuple[Differing, ...] = ()
    gone: int = 0  # how many rows Postgres has less than the warehouse
    days: tuple[date, ...] = ()  # on which these rides were taken, as one copy or the other says
    key: str = ""  # SHA-256 of all of them

    @property
    def are_new(self) -> bool:
        """Whether Postgres has all of these rides, and the warehouse none."""
        return self.rides > 0 and self.gone == -self.rides


class Rows(NamedTuple):
    """Rides in the order of their ids: the numbers of each, one after the other."""

    ids: "array[int]"
    micros: "array[int]"
    millimetres: "array[int]"

    def digest(self, after: int, upto: int) -> str:
        """The digest of the rides with `after < id <= upto`."""
        start, end = bisect_right(self.ids, after), bisect_right(self.ids, upto)
        numbers = array("q", bytes(24 * (end - start)))
        for place, column in enumerate(self):
            numbers[place::3] = column[start:end]
        if sys.byteorder == "little":
            numbers.byteswap()
        return sha256(numbers.tobytes()).hexdigest()

    def sums(self, after: int, cuts: Iterable[int]) -> Iterator[tuple[int, int, int, int]]:
        """The first id, the last, the rides and the millimetres between each two cuts."""
        start = bisect_right(self.ids, after)
        for cut in cuts:
            end = bisect_right(self.ids, cut)
            if end > start:
                metres = sum(self.millimetres[start:end])
                yield self.ids[start], self.ids[end - 1], end - start, metres
            start = end

    def ends(self, block: int) -> list[int]:
        """The ends of all blocks of so many ids that have rides, in order."""
        found, start = list[int](), 0
        while start < len(self.ids):
            found.append(-(-self.ids[start] // block) * block)
            start = bisect_right(self.ids, found[-1])
        return found

    def upto(self, last: int) -> "Rows":
        end = bisect_right(self.ids, last)
        return Rows(*(column[:end] for column in self))

    def beyond(self, last: int) -> "Rows":
        start = bisect_right(self.ids, last)
        return Rows(*(column[start:] for column in self))

    def then(self, more: "Rows") -> "Rows":
        return Rows(*(one + other for one, other in zip(self, more, strict=True)))


EMPTY = Rows(array("q"), array("q"), array("q"))


def of_columns(ids: "pa.Array", micros: "pa.Array", millimetres: "pa.Array") -> Rows:
    """Columns of 64-bit integers, which may have NULLs."""
    return Rows(*(_numbers(column) for column in (ids, micros, millimetres)))


def _numbers(column: "pa.Array") -> "array[int]":
    column = column.fill_null(NONE) if column.null_count else column
    start = column.offset * 8
    numbers = array("q")
    if len(column):
        numbers.frombytes(memoryview(column.buffers()[1])[start : start + len(column) * 8])
    return numbers


def differences(postgres: Rows, warehouse: Rows) -> Differences:
    """Compare two copies, ride by ride. The warehouse may have a ride twice, or none of a time."""
    if postgres == warehouse:
        return Differences()
    wrong, key, days = list[Differing](), sha256(), set[date]()
    for ride, one, others in differing(postgres, warehouse):
        key.update(repr((ride, one, others)).encode())
        days.update(_moment(each[0]).date() for each in (one, *others) if each)
        wrong.append(Differing(ride, said(one), said(others[0] if others else None)))
    gone = len(warehouse.ids) - len(postgres.ids)
    days_ = tuple(sorted(days))
    return Differences(len(wrong), tuple(wrong[:NAMED]), gone, days_, key.hexdigest())


def differing(
    postgres: Rows, warehouse: Rows
) -> Iterator[tuple[int, tuple[int, int] | None, list[tuple[int, int]]]]:
    """Each ride that is not the same in both: its id, Postgres' microseconds and millimetres, and
    those of each copy that the warehouse has.
    """
    ours = {ride: (micros, metres) for ride, micros, metres in zip(*postgres, strict=True)}
    theirs: dict[int, list[tuple[int, int]]] = {}
    for ride, micros, metres in zip(*warehouse, strict=True):
        theirs.setdefault(ride, []).append((micros, metres))
    for ride in sorted({*ours, *theirs}):
        one, others = ours.get(ride), theirs.get(ride, [])
        if others != [one]:
            yield ride, one, others


def said(ride: tuple[int, int] | None) -> Fields | None:
    """A ride's microseconds and millimetres, as a person reads them."""
    if ride is None:
        return None
    micros, metres = ride
    distance = None if metres == NONE else Decimal(metres).scaleb(-3)
    return Fields(None if micros == NONE else _moment(micros), distance)


def _moment(micros: int) -> datetime:
    """A stranger's time may be one that Python does not have."""
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if micros > 0 else datetime.min.replace(tzinfo=UTC)
