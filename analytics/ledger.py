"""The ledger: what the warehouse's rides add up to, block by block. So no run rereads them all.

All but `run` and `owners` follows from the rides and from `position`.
"""

import random
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal

import msgspec

from analytics.pieces import BLOCK, Piece, between, by_block, total
from analytics.result import Tally


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

    @property
    def tally(self) -> Tally:
        return Tally(self.rides, self.distance)


class Owner(msgspec.Struct, frozen=True):
    """The database that a run has read its rides from, up to the position `upto`."""

    upto: int
    database_id: str = msgspec.field(name="database")  # "" when we may not ask
    term: str  # the newest one there at the time; "" before the first


class Ledger(msgspec.Struct, frozen=True):
    """All rides up to `position`. Raises ValueError if its parts don't add up to that."""

    run: int = 0  # the newest one whose rides are in it
    position: int = 0
    total: Tally = Tally()
    blocks: list[Block] = []
    owners: list[Owner] = []  # of its runs, the newest last; runs in a row may share one

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

    def _index(self, ride_id: int) -> int:
        return bisect_left(self.blocks, ride_id, key=lambda block: block.upto)

    def upto(self, ride_id: int, pieces: Sequence[Piece]) -> Tally:
        """All rides up to `ride_id`, a cut of `pieces`: whole blocks, and the rest from those."""
        if ride_id > self.position:
            return self.total.plus(between(pieces, self.position, ride_id))
        if ride_id == 0:
            return Tally()
        index = self._index(ride_id)
        below = total(block.tally for block in self.blocks[:index])
        return below.plus(between(pieces, self.blocks[index].after, ride_id))

    def sample(self, size: int, chance: random.Random) -> list[Block]:
        """The newest block, and a random sample of the others."""
        older = self.blocks[:-1]
        return self.blocks[-1:] + chance.sample(older, min(size - 1, len(older)))

    def extended(self, upto: int, pieces: Sequence[Piece]) -> "Ledger":
        """The ledger with these pieces too: all the rides past `position`, up to `upto`."""
        if not pieces:
            return self
        blocks, newest = self.blocks[:-1], self.blocks[-1:]
        open_ = [Piece(block.first, block.last, *block.tally) for block in newest]
        for number, parts in by_block([*open_, *pieces]).items():
            after = blocks[-1].upto if blocks else 0
            ends = min(piece.first for piece in parts), max(piece.last for piece in parts)
            sums = total(piece.tally for piece in parts)
            blocks.append(Block(after, (number + 1) * BLOCK, *ends, *sums))
        blocks[-1] = msgspec.structs.replace(blocks[-1], upto=upto)
        new = total(piece.tally for piece in pieces)
        return Ledger(self.run, upto, self.total.plus(new), blocks, self.owners)

    def after_run(self, run: int, owner: Owner) -> "Ledger":
        """The ledger as run number `run` leaves it, which has read from `owner`."""
        same = (owner.database_id, owner.term)
        others = [each for each in self.owners if (each.database_id, each.term) != same]
        return msgspec.structs.replace(self, run=run, owners=[*others, owner])
