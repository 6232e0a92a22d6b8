"""The ledger: what the warehouse's rides add up to, block by block. So no run rereads them all.

It is a file of its own beside the table, named after its SHA-256, which the table's commit and the
run's row in Postgres (`runs.ledgers`) both give. So nobody alters a number in it unnoticed, and a
commit does not grow with history.

All but `run`, `owners`, `closings`, and when blocks were looked at, follows from the rides and the
ratings, and from `position`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from analytics.pieces import BLOCK, Piece, by_block, number_of, total
from analytics.result import Tally

NEVER = datetime(1, 1, 1, tzinfo=UTC)


class Broken(Exception):
    """The warehouse is not as the last run left it; the message says in what way."""


class Block(msgspec.Struct, frozen=True):
    """Rides with `after < id <= upto`, all within BLOCK ids; the range may be longer than that."""

    after: int
    upto: int
    first: int
    last: int
    rides: int
    distance: Decimal
    digest: str  # of its rides (`analytics.rows`)
    looked_at: datetime  # when Postgres' rides were last read, and were these

    @property
    def tally(self) -> Tally:
        return Tally(self.rides, self.distance)

    @property
    def is_several(self) -> bool:
        """Whether its digest is of several: a person has approved rides where none had been."""
        return number_of(self.first) != number_of(self.last)


class Rated(msgspec.Struct, frozen=True):
    """The ratings with `after < id <= upto`, all within BLOCK ids: how many, and their stars."""

    after: int
    upto: int
    ratings: int
    stars: int
    looked_at: datetime


class Owner(msgspec.Struct, frozen=True):
    """The database that a run has read its rides from, up to the position `upto`."""

    upto: int
    database_id: str = msgspec.field(name="database")  # "" when we may not ask
    term: str  # the newest one there at the time; "" before the first


class Closing(msgspec.Struct, frozen=True):
    """A period that was closed: what all rides up to `position` added up to."""

    id: int
    position: int
    rides: int
    distance: Decimal
    digest: str
    closed_at: datetime
    hash: str  # of its row, with the one before
    reopened: bool


class Ledger(msgspec.Struct, frozen=True):
    """All rides up to `position`. Raises ValueError if its parts don't add up to that."""

    run: int = 0  # the newest one whose rides are in it
    position: int = 0
    total: Tally = Tally()
    blocks: list[Block] = []
    owners: list[Owner] = []  # of its runs, the newest last; runs in a row may share one
    ratings: list[Rated] = []  # as many blocks as were added up: there is no warehouse of them
    closings: list[Closing] = []  # as the runs have seen them first, the oldest first

    def __post_init__(self) -> None:
        upto = 0
        for block in self.blocks:
            if block.after != upto:
                raise ValueError(f"it ends at ride {upto} and continues after ride {block.after}")
            upto = block.upto
        if upto != self.position or total(block.tally for block in self.blocks) != self.total:
            raise ValueError("it does not add up")

    def block_of(self, ride_id: int) -> Block:
        """The block whose range this id lies in; the id must not be past the last block."""
        return self.blocks[self._index(ride_id)]

    def within(self, after: int, upto: int) -> list[Block]:
        """The blocks that have positions with `after < id <= upto` in their ranges."""
        end = self._index(upto)
        return self.blocks[self._index(after + 1) : end + 1]

    def _index(self, ride_id: int) -> int:
        return bisect_left(self.blocks, ride_id, key=lambda block: block.upto)

    @property
    def oldest_look(self) -> datetime | None:
        """No ride was compared longer ago than this."""
        return min((block.looked_at for block in self.blocks), default=None)

    def extended(
        self,
        upto: int,
        pieces: Sequence[Piece],
        digests: Mapping[int, str] = {},
        now: datetime = NEVER,
    ) -> "Ledger":
        """The ledger with these pieces too: all the rides past `position`, up to `upto`.

        `digests` has one for the number of each block that is new, or has new rides.
        """
        if not pieces:
            return self
        blocks, newest = self.blocks[:-1], self.blocks[-1:]
        open_ = [Piece(block.first, block.last, *block.tally) for block in newest]
        for number, parts in by_block([*open_, *pieces]).items():
            after = blocks[-1].upto if blocks else 0
            ends = min(piece.first for piece in parts), max(piece.last for piece in parts)
            sums = total(piece.tally for piece in parts)
            digest = digests.get(number, newest[0].digest if newest else "")
            blocks.append(Block(after, (number + 1) * BLOCK, *ends, *sums, digest, now))
        blocks[-1] = msgspec.structs.replace(blocks[-1], upto=upto)
        new = total(piece.tally for piece in pieces)
        changed = {"position": upto, "total": self.total.plus(new), "blocks": blocks}
        return msgspec.structs.replace(self, **changed)

    def with_blocks(self, changed: Iterable[Block]) -> "Ledger":
        """The ledger with these blocks in place of those that begin where they do."""
        new = {block.after: block for block in changed}
        blocks = [new.get(block.after, block) for block in self.blocks]
        sums = total(block.tally for block in blocks)
        return msgspec.structs.replace(self, blocks=blocks, total=sums)

    def looked_at_by(self, now: datetime) -> "Ledger":
        """The ledger without looks later than now: a clock may have been ahead.

        Else such a block would not have its turn in rotation before that time.
        """
        blocks, ratings = (
            [msgspec.structs.replace(each, looked_at=min(each.looked_at, now)) for each in of]
            for of in (self.blocks, self.ratings)
        )
        return msgspec.structs.replace(self, blocks=blocks, ratings=ratings)

    def with_ratings(self, ratings: Sequence[Rated]) -> "Ledger":
        """The ledger with these ratings in place of its own."""
        return msgspec.structs.replace(self, ratings=[*ratings])

    def with_closings(self, closings: Sequence[Closing]) -> "Ledger":
        """The ledger with these closings in place of its own."""
        return msgspec.structs.replace(self, closings=[*closings])

    def after_run(self, run: int, owner: Owner) -> "Ledger":
        """The ledger as run number `run` leaves it, which has read from `owner`."""
        same = (owner.database_id, owner.term)
        others = [each for each in self.owners if (each.database_id, each.term) != same]
        return msgspec.structs.replace(self, run=run, owners=[*others, owner])
