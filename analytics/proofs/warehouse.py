"""The warehouse: does it still agree with Postgres, the source of truth?

A ride never changes, so any difference was made outside the application.
"""

import random
from collections.abc import Iterable, Sequence

import psycopg

from analytics.ledger import Block, Ledger
from analytics.pieces import BLOCK, Piece, between, by_block, total
from analytics.result import Mismatch, Tally
from rocket_rides.cells import CELL_SIZE
from rocket_rides.database import one_row

SAMPLE = 8  # blocks that a night checks
RIDES_IN_BLOCK = """
    SELECT count(*), coalesce(sum(distance), 0), min(id), max(id)
    FROM rides WHERE id > %s AND id <= %s
"""


def chosen(known: Ledger, marks: Sequence[int], chance: random.Random) -> list[Block]:
    """A sample of the warehouse's blocks, and every one that a mark lies in; in order."""
    if not known.blocks:
        return []
    blocks = known.sample(SAMPLE, chance)
    first = known.blocks[0].first
    blocks += [known.block_of(mark) for mark in marks if first <= mark <= known.position]
    return sorted(set(blocks), key=lambda block: block.upto)


def against_postgres(
    connection: psycopg.Connection, blocks: Iterable[Block], pieces: Sequence[Piece]
) -> list[Mismatch]:
    """Check blocks against Postgres: the ledger's sums, and the `pieces` read from their files."""
    mismatches = []
    for block in blocks:
        row = one_row(connection.execute(RIDES_IN_BLOCK, [block.after, block.upto]))
        postgres, *ends = Tally(*row[:2]), *row[2:]
        in_files = between(pieces, block.after, block.upto)
        if not postgres == in_files == block.tally or ends != [block.first, block.last]:
            warehouse = block.tally if in_files == postgres else in_files
            # The first block begins where the cell does.
            after = block.after or (block.first - 1) // CELL_SIZE * CELL_SIZE
            mismatches.append(Mismatch(after, block.upto, warehouse, postgres))
    return mismatches


def against_all(old: Sequence[Piece], new: Sequence[Piece], upto: int) -> list[Mismatch]:
    """Check the `old` warehouse, which ends at `upto`, against the `new` pieces from Postgres."""
    had, has = by_block(old), by_block(piece for piece in new if piece.last <= upto)
    mismatches = []
    for number in sorted({*had, *has}):
        warehouse = total(piece.tally for piece in had.get(number, []))
        postgres = total(piece.tally for piece in has.get(number, []))
        if warehouse != postgres:
            end = min((number + 1) * BLOCK, upto)
            mismatches.append(Mismatch(number * BLOCK, end, warehouse, postgres))
    return mismatches
