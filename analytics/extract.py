"""Extract: Spark's tasks read rides from Postgres, range by range, and write them as Parquet.

Each range is one statement in its own transaction, which takes a second or so. A task reads it
through ADBC, which uses binary COPY and returns Arrow batches, and writes these itself, a file for
each day: no ride passes through Java on its way. It reads its files back, and compares. The driver
learns of a file only when it is on disk and its task has ended. So nobody reads what a failed task,
or the second run of a task, has left behind. A task also adds its rides up, between cuts and by
minute, and takes the digest of each block. A run that only checks writes nothing.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from analytics import parquet, rows
from analytics.from_postgres import RIDES_IN_RANGE, as_rows, for_executors, in_metres, reading
from analytics.minutes import by_minute, merged
from analytics.parquet import File
from analytics.pieces import BLOCK, Piece, piece
from analytics.rows import Rows
from analytics.store import Store
from analytics.tasks import done

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from pyspark import SparkContext

# In a range, unless there are fewer. A file of so many rides of one day is some 0.4 to 4 MB.
LEAST_ROWS = 100_000
MOST_ROWS = 1_000_000

ROWS_BY_BLOCK = """
    SELECT (id - 1) / {block}, count(*) FROM {table} WHERE id > %s AND id <= %s
    GROUP BY 1 ORDER BY 1
"""


class CountedRange(NamedTuple):
    """Rows with `after < id <= upto`, and their number. No block lies in two ranges."""

    after: int
    upto: int
    rows: int


def cut_into_ranges(
    connection: "psycopg.Connection", after: int, upto: int, parallelism: int, table: str = "rides"
) -> list[CountedRange]:
    """Cut the rows with `after < id <= upto` into ranges of about equally many, of whole blocks.

    How many is a matter of the rows, hardly of the machine: many cores would make many small files.
    """
    statement = ROWS_BY_BLOCK.format(block=BLOCK, table=table)
    blocks = connection.execute(statement, [after, upto]).fetchall()
    share = sum(count for _, count in blocks) // (2 * parallelism)
    enough = min(max(share, LEAST_ROWS), MOST_ROWS)
    ranges: list[CountedRange] = []
    for number, count in blocks:
        end = min((number + 1) * BLOCK, upto)
        if ranges and ranges[-1].rows + count <= enough:
            ranges[-1] = ranges[-1]._replace(upto=end, rows=ranges[-1].rows + count)
        else:
            ranges.append(CountedRange(ranges[-1].upto if ranges else after, end, count))
    return ranges


class Extracted(NamedTuple):
    """What a run has read from Postgres."""

    files: list[File]  # with these rides; none if the run only checks
    pieces: list[Piece]
    digests: dict[int, str]  # by the block's number; of the first one, of its rides in here
    minutes: "pa.Table | None"  # what they add up to by minute


def extract(
    spark: "SparkContext",
    url: str,
    table: str,
    ranges: Sequence[CountedRange],
    marks: Sequence[int],
    root: str | None,
) -> Extracted:
    """Read the rides in `ranges`; write them to files of the table at `root`, if that is given.

    Raises what Spark raises.
    """
    if not ranges:
        return Extracted([], [], {}, None)
    task = partial(_read, for_executors(url, sys.modules[__name__]), table, marks, root)
    read = done(spark, task, ranges, len(ranges))
    files, pieces, digests, minutes = zip(*read, strict=True)
    return Extracted(
        [File(*file) for some in files for file in some],
        [piece(*sums) for some in pieces for sums in some],
        {number: digest for some in digests for number, digest in some.items()},
        merged(minutes),
    )


def _read(
    url: str, table: str, marks: Sequence[int], root: str | None, ends: CountedRange
) -> tuple[Any, ...]:
    """Read one range. Runs on an executor."""
    after, upto, _ = ends
    read, minutes, files = list[Rows](), list["pa.Table | None"](), list[File]()

    def noted(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            read.append(as_rows(batch))
            rides = in_metres(batch)
            minutes.append(by_minute(rides))
            yield rides

    with reading(url, RIDES_IN_RANGE.format(table=table, after=after, upto=upto)) as batches:
        if root:
            files = parquet.write(noted(batches), Store(root))
        else:
            deque(noted(batches), 0)
    rides = reduce(Rows.then, read, rows.EMPTY)
    if root and rides != parquet.read(Store(root), [file[:2] for file in files], after, upto):
        raise OSError(f"{root} has other rides than were written to it")
    ends_of_blocks = rides.ends(BLOCK)
    cuts = sorted({*ends_of_blocks, *(mark for mark in marks if after < mark < upto)})
    digests = {(end - 1) // BLOCK: rides.digest(end - BLOCK, end) for end in ends_of_blocks}
    return files, [*rides.sums(after, cuts)], digests, merged(minutes)
