"""Closings: what the rides of the periods that are closed add up to, and whether that still holds.

Each row of `closings` holds the hash of the one before; the ledger carries those that the runs have
seen. So a row that somebody alters or deletes contradicts the next one, or the ledger. What a
closing says of the rides is compared with the warehouse's files and the ledger: the digests of the
whole blocks below it, and of the rides of the block that it cuts.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

import psycopg

from analytics.ledger import Closing, Ledger
from analytics.look import Ask
from analytics.pieces import BLOCK, Piece, number_of, total
from analytics.result import Tally

# Times as `analytics.from_postgres` reads them: whoever alters a row may leave one of any kind.
ALL = """
    SELECT id, position, rides, total_distance, digest,
           greatest(least(closed_at, '9999-12-31 00:00+00'), '0001-01-01 00:00+00'),
           hash, reopened_at IS NOT NULL,
           run_id, closed_by, previous, hash = closing_hash(closings),
           CASE WHEN reopened_at IS NOT NULL THEN
               greatest(least(reopened_at, '9999-12-31 00:00+00'), '0001-01-01 00:00+00')
           END, reopened_by, reason
    FROM closings ORDER BY id
"""


class Row(NamedTuple):
    """A closing, as it stands in Postgres."""

    closing: Closing
    run: int
    closed_by: str
    previous: str  # the hash of the one before, as this one says
    has_its_hash: bool
    reopened_at: datetime | None
    reopened_by: str | None
    reason: str | None


class Balance(NamedTuple):
    """What all rides up to a position are: how many, and their metres.

    The digest is the SHA-256 over the numbers and digests of the blocks that have rides, in order.
    """

    tally: Tally
    digest: str


def read(connection: psycopg.Connection) -> list[Row]:
    """All of them, the oldest first."""
    return [Row(Closing(*row[:8]), *row[8:]) for row in connection.execute(ALL)]


def valid(rows: Iterable[Row]) -> list[Closing]:
    """Those that are not reopened, by their positions: totals begin at the last."""
    of = (row.closing for row in rows if not row.closing.reopened)
    return sorted(of, key=lambda closing: closing.position)


def newest(rows: Iterable[Row]) -> Closing | None:
    """The last one that is not reopened."""
    return next(reversed(valid(rows)), None)


def altered(rows: Sequence[Row], known: Iterable[Closing] = ()) -> Iterator[tuple[int, str]]:
    """Which are not what they were, and in what way. `known` are those that the last run has seen.

    Nobody relies on one that is reopened, so its hash does not matter any more.
    """
    here, before = {row.closing.id: row.closing for row in rows}, ""
    for row in rows:
        if not row.closing.reopened:
            if not row.has_its_hash:
                yield row.closing.id, "was altered: its hash is that of another row"
            elif row.previous != before:
                yield row.closing.id, "does not follow the one before: that one, or it, was altered"
        before = row.closing.hash
    for was in known:
        now = here.get(was.id)
        if now is None:
            yield was.id, "is gone"
        elif now.hash != was.hash and not now.reopened:
            yield was.id, "is another one than the last run has seen"
        elif was.reopened and not now.reopened:
            yield was.id, "was reopened, and says so no longer"


def cut(position: int) -> Ask:
    """The rides up to a position in the block that it cuts."""
    after = number_of(position) * BLOCK
    return Ask(after, position, position, (), (position,))


def balance(ledger: Ledger, position: int, rest: Sequence[Piece], digest: str) -> Balance:
    """That of the ledger's whole blocks below, and of the `rest`, whose digest this is."""
    blocks = [
        block
        for block in ledger.blocks
        if block.rides and number_of(block.last) < number_of(position)
    ]
    parts = [(number_of(block.last), block.digest) for block in blocks]
    parts += [(number_of(position), digest)] if rest else []
    sums = total([*(block.tally for block in blocks), *(piece.tally for piece in rest)])
    lines = "".join(f"{number} {each}\n" for number, each in parts)
    return Balance(sums, sha256(lines.encode()).hexdigest())


def says(closing: Closing) -> Balance:
    return Balance(Tally(closing.rides, closing.distance), closing.digest)
