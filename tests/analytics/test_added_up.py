"""Spark's tasks add up rides as pure Python does, ride by ride; they need no code of ours."""

import random
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from analytics import extract, look, minutes, parquet, records, tasks
from analytics.from_postgres import for_executors
from analytics.minutes import Minute
from analytics.pieces import BLOCK, Piece, piece
from analytics.proofs import ratings
from analytics.store import Store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MOST = Decimal("999999999.999")
MICROSECOND = timedelta(microseconds=1)
LOAD = "import pickle, sys; pickle.load(sys.stdin.buffer); print(*sys.modules)"


class Ride(NamedTuple):
    id: int
    created_at: datetime
    distance: Decimal

    @property
    def day(self) -> date:
        return self.created_at.date()


def rides_of_three_blocks() -> list[Ride]:
    """At the ends of a block, in the first and last moment of a minute, as long as can be; and any.

    Their days differ, and their minutes are not in the order of their ids.
    """
    chance = random.Random(7)
    edges = [
        Ride(BLOCK, NOON, MOST),
        Ride(BLOCK + 1, NOON + timedelta(1) - MICROSECOND, MOST),
        Ride(BLOCK + 2, NOON + timedelta(1), MOST),
        Ride(BLOCK + 3, datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), MOST),
    ]
    others = chance.sample([*range(1, BLOCK), *range(BLOCK + 4, 3 * BLOCK)], 3000)
    return sorted(edges) + [
        Ride(
            number,
            NOON + timedelta(microseconds=chance.randrange(300_000_000)),
            Decimal(chance.randrange(1, 10**12)).scaleb(-3),
        )
        for number in others
    ]


def in_arrow(rides: list[Ride]) -> pa.RecordBatch:
    columns = zip(*((*ride, ride.day) for ride in rides), strict=True)
    types = parquet.schema().types
    arrays = [pa.array(column).cast(type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=parquet.schema())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path))


@pytest.mark.parametrize("most", [5, 700])
def test_rides_are_added_up_between_cuts_as_one_by_one(store: Store, most: int) -> None:
    """The ride at a mark is below it. Each ride that a total holds out has two marks."""
    rides = rides_of_three_blocks()
    marks = [*(ride.id for ride in rides[:most]), 2 * BLOCK - 1]
    expected: dict[tuple[int, int], Piece] = {}
    for id_, _, distance in rides:
        place = (id_ - 1) // BLOCK, sum(id_ > mark for mark in marks)
        one = expected.get(place, Piece(id_, id_, 0, Decimal(0)))
        expected[place] = Piece(
            min(one.first, id_), max(one.last, id_), one.rides + 1, one.distance + distance
        )
    files = [file[:2] for file in parquet.write([in_arrow(rides)], store)]
    found = parquet.read(store, files, 0, 3 * BLOCK)
    sums = found.sums(0, sorted({*marks, *found.ends(BLOCK)}))
    assert [piece(*each) for each in sums] == sorted(expected.values())


def test_rides_are_added_up_in_their_minutes_as_one_by_one(store: Store) -> None:
    """In parts, too, and from files."""
    expected: dict[datetime, Minute] = {}
    for id_, created_at, distance in (rides := rides_of_three_blocks()):
        minute = created_at.replace(second=0, microsecond=0)
        one = expected.get(minute, Minute(0, Decimal(0), id_, id_))
        expected[minute] = Minute(
            one.rides + 1, one.distance + distance, min(one.first, id_), max(one.last, id_)
        )
    parts = [minutes.by_minute(in_arrow(rides[n : n + 700])) for n in range(0, len(rides), 700)]
    days = minutes.days_of(minutes.merged(parts))
    assert days == {ride.day for ride in rides}
    assert minutes.of_days(parts, days) == expected
    files = [file[:2] for file in parquet.write([in_arrow(rides)], store)]
    assert minutes.of_days([minutes.of_files(store, files)], days) == expected
    at_noon = minutes.of_days([*parts, None], {NOON.date()})
    assert {*at_noon} == {minute for minute in expected if minute.date() == NOON.date()}
    assert minutes.of_days([None], days) == {}


def test_rides_of_times_that_python_lacks_are_in_no_minute() -> None:
    days = [date(1, 1, 1), date(1, 1, 2), date(9999, 12, 30), date(9999, 12, 31)]
    times = [datetime(day.year, day.month, day.day, tzinfo=UTC) for day in days]
    rides = [Ride(id_, at, Decimal(1)) for id_, at in enumerate(times)]
    columns = [*in_arrow(rides).columns[:3]]
    for beyond in (-(2**63), 2**63 - 1):
        more = [pa.array([9]), pa.array([beyond]).cast(pa.timestamp("us", "UTC")), columns[2][:1]]
        columns = [pa.concat_arrays(each) for each in zip(columns, more, strict=True)]
    found = minutes.by_minute(pa.RecordBatch.from_arrays(columns, ["id", "created_at", "distance"]))
    assert found["first"].to_pylist() == [1, 2]


def test_an_executor_needs_nothing_of_this_project() -> None:
    """What tasks run is sent along; a cluster's hosts have the packages alone."""
    url = for_executors("postgresql:///none", extract, look, records, ratings, tasks)
    ends = extract.CountedRange(0, 1, 1)
    ours: list[Any] = [
        partial(extract._read, url, "rides", [], "/tmp", ends),  # noqa: S108
        partial(look._look, url, "rides", "/tmp"),  # noqa: S108
        look._digest,
        look._minutes,
        look._pieces,
        records._count,
        ratings._add_up,
    ]
    sent = cloudpickle.dumps(  # type: ignore[no-untyped-call]
        [partial(tasks._run, task) for task in ours]
    )
    done = subprocess.run([sys.executable, "-I", "-c", LOAD], input=sent, stdout=-1, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.decode().split()}
    assert not loaded & {"analytics", "rocket_rides", "unified_log"}
