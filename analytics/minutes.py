"""Adding up rides by minute in Spark's tasks, exactly: the rollup is compared with that."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from analytics import parquet
from analytics.result import Tally
from analytics.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

# The times that Python has, in any time zone. Rides of other times are in no minute here.
FIRST, END = date(1, 1, 2), date(9999, 12, 31)
A_MINUTE = 60_000_000  # microseconds
SUMS = {"rides": "sum", "distance": "sum", "first": "min", "last": "max"}


class Minute(NamedTuple):
    """The rides of one minute: how many, their metres, and the first and the last of their ids."""

    rides: int
    distance: Decimal
    first: int
    last: int

    @property
    def tally(self) -> Tally:
        return Tally(self.rides, self.distance)


Minutes = Mapping[datetime, Minute]


def by_minute(rides: "pa.RecordBatch") -> "pa.Table":
    """Add up rides (id, created_at, distance): minute, rides, distance, first, last."""
    import pyarrow as pa
    from pyarrow import compute, dataset

    at = pa.timestamp("us", "UTC")
    first, end = (pa.scalar(day).cast(pa.timestamp("us")).cast(at) for day in (FIRST, END))
    created_at = dataset.field("created_at")
    found = pa.Table.from_batches([rides]).filter((created_at >= first) & (created_at < end))
    since = compute.subtract(found["created_at"].cast(at).cast(pa.int64()), first.value)
    begun = compute.multiply(compute.divide(since, A_MINUTE), A_MINUTE)
    columns = {
        "minute": compute.add(begun, first.value).cast(at),
        "rides": pa.repeat(1, len(found)),
        "distance": found["distance"],
        "first": found["id"],
        "last": found["id"],
    }
    return merged([pa.table(columns)])


def merged(sums: "Iterable[pa.Table | None]") -> "pa.Table | None":
    """The same, of several that may have rides of the same minutes; None of none.

    A sum has up to 38 digits: more than there can be rides for.
    """
    import pyarrow as pa
    from pyarrow import compute

    if not (parts := [part for part in sums if part is not None]):
        return None
    zero = compute.ScalarAggregateOptions(min_count=0)  # where a stranger left out all distances
    grouped = pa.concat_tables(parts).group_by("minute", use_threads=False)
    found = grouped.aggregate([(name, how, zero) for name, how in SUMS.items()])
    return found.rename_columns(["minute", *SUMS])


def of_files(store: Store, files: "Sequence[tuple[str, int]]") -> "pa.Table | None":
    """The minutes of all rides in files. Raises ValueError as `parquet.batches`, or OSError."""
    return merged(by_minute(batch) for batch in parquet.batches(store, files))


def days_of(sums: "pa.Table | None") -> set[date]:
    """The days that these minutes are of."""
    from pyarrow import compute

    return set() if sums is None else {*compute.unique(_day(sums)).to_pylist()}


def of_days(sums: "Iterable[pa.Table | None]", days: Collection[date]) -> Minutes:
    """The minutes of these days, in the driver: 1440 a day at most."""
    import pyarrow as pa
    from pyarrow import compute

    if (found := merged(sums)) is None:
        return {}
    asked = found.filter(compute.is_in(_day(found), pa.array(days, pa.date32())))
    rows = asked.to_pydict().values()
    return {minute: Minute(*row) for minute, *row in zip(*rows, strict=True)}


def _day(sums: "pa.Table") -> "pa.ChunkedArray":
    import pyarrow as pa

    return sums["minute"].cast(pa.timestamp("us")).cast(pa.date32())
