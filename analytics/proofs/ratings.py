"""The ratings: what each consumer has counted is compared with what Spark adds up from the table.

A rating never changes, and all of them up to a checkpoint are settled. There is no warehouse of
ratings, but the ledger has their number and their stars, block by block: so a run reads those since
the last one, the blocks in which a consumer stands, and others in rotation (`analytics.rotation`).

Where the table and the ledger disagree, the table was changed: that is held, also if a consumer has
recounted, or if what it counted since is off by the same. Two stars that were swapped within a
block are not seen.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import psycopg

from analytics.extract import CountedRange, cut_into_ranges
from analytics.from_postgres import for_executors, reading, this_table
from analytics.ledger import Ledger, Rated
from analytics.pieces import BLOCK
from analytics.result import CountedRatings, RatingsVerdict
from analytics.tasks import done
from unified_log.database import one_row

if TYPE_CHECKING:
    from pyspark import SparkContext

# An application that has lifted this job may have no ratings.
ARE_THERE = "SELECT to_regclass('rating_sums') IS NOT NULL"
# With the ratings that it holds out, as of a total (`analytics.freeze`).
STAND = """
    SELECT name, position, ratings, stars, position > last_sent_id, ARRAY(
        SELECT held.position FROM held_out_records held
        WHERE (held.kind, held.name) = (checkpoints.kind, checkpoints.name)
          AND held.position <= checkpoints.position AND held.type = ANY(types)
        ORDER BY held.position
    ), recount IS TRUE
    FROM rating_sums JOIN checkpoints USING (kind, name) CROSS JOIN streamer_state ORDER BY name
"""
RATINGS = "SELECT id, stars::bigint FROM {table} WHERE id > {after} AND id <= {upto}"


class Standing(NamedTuple):
    """What a consumer says of itself."""

    name: str
    position: int
    ratings: int
    stars: int
    stray: bool
    held_out: list[int]  # the positions of the ratings that it lacks
    recounts: bool


class Sum(NamedTuple):
    """The ratings of a block between two cuts."""

    number: int  # of the block
    last: int
    ratings: int
    stars: int


class Proven(NamedTuple):
    """What was found, and the ledger that follows; and both if Postgres is right in any case."""

    verdict: RatingsVerdict
    ledger: Ledger
    approved: RatingsVerdict
    approved_ledger: Ledger


def prove(
    connection: psycopg.Connection,
    spark: "SparkContext",
    url: str,
    shown: Callable[[str], AbstractContextManager[object]],
    base: Ledger,
    upto: int,
    again: Callable[[Sequence[Rated]], Sequence[Rated]],
    now: datetime,
) -> Proven:
    """Compare every consumer's number of ratings, and its sum, at its own position.

    The ledgers returned have the ratings up to `upto`; `again` chooses what else is read.
    """
    if not one_row(connection.execute(ARE_THERE))[0]:
        return Proven(RatingsVerdict(), base, RatingsVerdict(), base)
    stand = [Standing(*row) for row in connection.execute(STAND)]
    # Consumers go on while a run reads, and all ratings up to a checkpoint are settled.
    furthest = max([upto, *(each.position for each in stand if not each.stray)])
    known = _joined(base.ratings)
    full = [rated for rated in known if rated.upto % BLOCK == 0]
    newest = known[len(full) :]  # not full yet
    marks = {upto, *(min(each.position, furthest) for each in stand)}
    held_out = {id_ for each in stand for id_ in each.held_out if id_ <= furthest}
    marks |= {mark for id_ in held_out for mark in (id_ - 1, id_)}  # so each is read by itself
    after = newest[0].after if newest else full[-1].upto if full else 0
    again_ = {rated.upto: rated for rated in again(full)}
    again_ |= {
        rated.upto: rated for rated in full if any(rated.after < m < rated.upto for m in marks)
    }
    table = this_table(connection, "ratings")
    ranges = cut_into_ranges(connection, after, furthest, spark.defaultParallelism, table)
    ranges += [CountedRange(rated.after, rated.upto, rated.ratings) for rated in again_.values()]
    reread = [*again_.values(), *newest]
    sums = list[Sum]()
    if ranges:
        cuts = sorted(marks | {rated.upto for rated in newest})
        task = partial(_add_up, for_executors(url, sys.modules[__name__]), table, cuts)
        with shown("Adding up ratings"):
            slices = min(len(ranges), 4 * spark.defaultParallelism)
            found = done(spark, task, ranges, slices)
            sums = [Sum(*each) for some in found for each in some]
    kept = [rated for rated in full if rated.upto not in again_]
    changed = [rated for rated in reread if _of(sums, rated) != (rated.ratings, rated.stars)]

    if changed and len(again_) < len(full):  # or the next run would find others (`Case.read`)
        return prove(connection, spark, url, shown, base, upto, list, now)

    def exact(position: int, as_known: Sequence[Rated] = ()) -> tuple[int, int]:
        """Ratings and stars up to a position, of some blocks as the ledger has them."""
        below = [rated for rated in as_known if rated.upto <= position]
        known = [*below, *(rated for rated in kept if rated.upto <= position)]
        read = [
            each
            for each in sums
            if each.last <= position
            and not any(rated.after < each.last <= rated.upto for rated in below)
        ]
        return (
            sum(rated.ratings for rated in known) + sum(each.ratings for each in read),
            sum(rated.stars for rated in known) + sum(each.stars for each in read),
        )

    def verdict(held: Sequence[Rated]) -> RatingsVerdict:
        consumers = []
        for each in stand:
            sums_there = exact(min(each.position, furthest), held)
            consumers.append(
                CountedRatings(
                    *each[:5], *sums_there, *_held_out(sums, each),
                    min(each.held_out, default=None), each.recounts,
                )
            )  # fmt: skip
        return RatingsVerdict(consumers, tuple((rated, *_of(sums, rated)) for rated in held))

    looked = {rated.upto: msgspec.structs.replace(_with(rated, sums), looked_at=now)
              for rated in again_.values()}  # fmt: skip
    old = [looked.get(rated.upto, rated) for rated in full]
    taken = base.with_ratings([*old, *_new(sums, after, upto, now)])
    # Where anything is held, the ledger keeps what it knows.
    return Proven(verdict(changed), base if changed else taken, verdict(()), taken)


def _joined(ratings: Sequence[Rated]) -> list[Rated]:
    """Each block from the end of the one before: somebody may add ratings in between."""
    ends = [0, *(rated.upto for rated in ratings)]
    return [
        msgspec.structs.replace(rated, after=after)
        for after, rated in zip(ends, ratings, strict=False)
    ]


def _of(sums: Sequence[Sum], rated: Rated) -> tuple[int, int]:
    found = [each for each in sums if rated.after < each.last <= rated.upto]
    return sum(each.ratings for each in found), sum(each.stars for each in found)


def _held_out(sums: Sequence[Sum], one: Standing) -> tuple[int, int]:
    """What a consumer lacks, and says so: ratings, and stars."""
    lacking = {*one.held_out}
    found = [each for each in sums if each.last in lacking and each.ratings == 1]
    return len(found), sum(each.stars for each in found)


def _with(rated: Rated, sums: Sequence[Sum]) -> Rated:
    ratings, stars = _of(sums, rated)
    return msgspec.structs.replace(rated, ratings=ratings, stars=stars)


def _new(sums: Sequence[Sum], after: int, upto: int, now: datetime) -> list[Rated]:
    """The blocks with ratings past `after`; the last may not be full yet."""
    numbers = sorted({each.number for each in sums if after < each.last <= upto})
    blocks = [
        Rated(max(number * BLOCK, after), min((number + 1) * BLOCK, upto), 0, 0, now)
        for number in numbers
    ]
    return [_with(block, sums) for block in blocks]


def _add_up(url: str, table: str, marks: list[int], ends: CountedRange) -> list[tuple[int, ...]]:
    """The sums of one range, cut at its blocks and at the marks. Runs on an executor."""
    import pyarrow as pa
    import pyarrow.compute as pc

    statement = RATINGS.format(table=table, after=ends[0], upto=ends[1])
    with reading(url, statement) as batches:
        ratings = batches.read_all().rename_columns(["id", "stars"])
    number = pc.divide(pc.subtract(ratings["id"], 1), BLOCK)
    segment = pa.chunked_array([pa.repeat(0, len(ratings))])
    for mark in (mark for mark in marks if ends[0] < mark < ends[1]):
        segment = pc.add(segment, pc.greater(ratings["id"], mark).cast(pa.int64()))
    sums = (
        ratings.append_column("number", number)
        .append_column("segment", segment)
        .group_by(["number", "segment"])
        .aggregate([("id", "max"), ("id", "count"), ("stars", "sum")])
    )
    columns = ("number", "id_max", "id_count", "stars_sum")
    return [*zip(*(sums[name].to_pylist() for name in columns), strict=True)]
