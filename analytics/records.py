"""An independent witness: as many records as the streamer has sent must be in their tables.

The streamer counts each record once, when it commits it as sent (`streamer_state.records_sent`). So
the rows of `log_records` up to `last_sent` are as many, unless rows are hidden from this session,
gone, or were added by hand. Spark's tasks count them, range by range: none of them holds a snapshot
for longer than a second or so. What is settled does not change meanwhile.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from analytics.from_postgres import for_executors, reading, this_table
from analytics.ledger import Ledger
from analytics.pieces import BLOCK
from analytics.tasks import done

if TYPE_CHECKING:
    import psycopg
    from pyspark import SparkContext

BLOCKS_AT_ONCE = 10
COUNT = "SELECT count(*) FROM {view} WHERE id > {after} AND id <= {upto}"


def ranges(known: Ledger, start: int, upto: int) -> list[tuple[int, int]]:
    """All positions up to `upto`, cut where the ledger has blocks, however far ids are apart."""
    ends = [block.upto for block in known.blocks[BLOCKS_AT_ONCE - 1 :: BLOCKS_AT_ONCE]]
    ends = [end for end in ends if start < end < upto]
    if upto - (ends[-1] if ends else start) > 2 * BLOCKS_AT_ONCE * BLOCK:  # nobody knows how many
        last = ends[-1] if ends else start
        step = max((upto - last) // 64, BLOCKS_AT_ONCE * BLOCK)
        ends += range(last + step, upto, step)
    return [*zip([start, *ends], [*ends, upto], strict=True)]


def seen(
    connection: "psycopg.Connection",
    spark: "SparkContext",
    url: str,
    cuts: Sequence[tuple[int, int]],
) -> int:
    """How many records the tables have. Raises what Spark raises."""
    url = for_executors(url, sys.modules[__name__])
    count = partial(_count, url, this_table(connection, "log_records"))
    return sum(done(spark, count, cuts, min(len(cuts), 64)))


def _count(url: str, view: str, ends: tuple[int, int]) -> int:
    """The rows in one range. Runs on an executor."""
    after, upto = ends
    with reading(url, COUNT.format(view=view, after=after, upto=upto)) as batches:
        return sum(sum(batch.column(0).to_pylist()) for batch in batches)
