"""What the warehouse holds, according to its manifests, so that no night rereads history."""

import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

import msgspec

from analytics.cells import BLOCK, Cell, between, by_block, by_day, total
from analytics.result import Tally


class Broken(Exception):
    """The warehouse is not as the runs left it; the message says in what way."""


class Block(msgspec.Struct, frozen=True):
    """Rides with `after < id <= upto`: at most BLOCK of them; some of the ids may be unused."""

    after: int
    upto: int
    first: int
    last: int
    first_day: date
    last_day: date
    rides: int
    distance: Decimal
    run: int

    @property
    def tally(self) -> Tally:
        return Tally(self.rides, self.distance)

    def has_any(self, days: Iterable[date]) -> bool:
        """Whether it may have rides of one of these days."""
        return any(self.first_day <= day <= self.last_day for day in days)


class Manifest(msgspec.Struct, frozen=True):
    """One run: the rides with `after < id <= upto`. The totals count all rides up to there.

    Fields with a default are missing from manifests of earlier versions.
    """

    run: int
    after: int
    upto: int
    total_rides: int
    total_distance: Decimal
    days: dict[date, Tally]  # this run's
    blocks: list[Block]
    # The database that its rides were read from.
    database_id: str | None = msgspec.field(default=None, name="database")
    term: str | None = None  # the newest one there at the time
    files: dict[str, int] = {}  # its Parquet files, and how many bytes each has


class Ledger:
    """All runs, in order. Raises Broken unless they follow one another without a hole."""

    def __init__(self, manifests: Sequence[Manifest] = ()) -> None:
        self.last_ride_id = 0
        self.total = Tally()
        self.blocks: list[Block] = []
        self._totals = [Tally()]  # before each block, and after the last
        self.days: dict[date, Tally] = {}
        for manifest in manifests:
            self._append(manifest)
        self.days = dict(sorted(self.days.items()))

    def _append(self, manifest: Manifest) -> None:
        upto = self.last_ride_id
        for block in manifest.blocks:
            if block.after != upto:
                raise Broken(f"it ends at ride {upto} and continues after ride {block.after}")
            upto = block.upto
            self._totals.append(self._totals[-1].plus(block.tally))
        self.total = Tally(manifest.total_rides, manifest.total_distance)
        if upto != manifest.upto or self.total != self._totals[-1]:
            raise Broken(f"the manifest of run {manifest.run} does not add up")
        self.blocks += manifest.blocks
        self.last_ride_id = upto
        for day, tally in manifest.days.items():
            self.days[day] = self.days.get(day, Tally()).plus(tally)

    def block_of(self, ride_id: int) -> Block:
        """The block whose range this id lies in; the id must not be past the last block."""
        return self.blocks[self._index(ride_id)]

    def _index(self, ride_id: int) -> int:
        return bisect_left(self.blocks, ride_id, key=lambda block: block.upto)

    def upto(self, ride_id: int, cells: Sequence[Cell]) -> Tally:
        """All rides up to `ride_id`: whole blocks, then the rest from `cells`, cut there."""
        if ride_id > self.last_ride_id:
            return self.total.plus(between(cells, self.last_ride_id, ride_id))
        if ride_id == 0:
            return Tally()
        index = self._index(ride_id)
        return self._totals[index].plus(between(cells, self.blocks[index].after, ride_id))

    def sample(self, size: int, chance: random.Random) -> list[Block]:
        """The newest block, and a random sample of the others."""
        older = self.blocks[:-1]
        return self.blocks[-1:] + chance.sample(older, min(size - 1, len(older)))

    def next_manifest(self, run: int, upto: int, cells: Sequence[Cell]) -> Manifest:
        """The manifest of a run that adds these cells: all the rides up to `upto`."""
        after = self.last_ride_id
        blocks: list[Block] = []
        for number, cells_of_block in by_block(cells).items():
            end = min((number + 1) * BLOCK, upto)
            start = blocks[-1].upto if blocks else after
            blocks.append(_block(run, start, end, cells_of_block))
        blocks[-1] = msgspec.structs.replace(blocks[-1], upto=upto)
        all_rides = self.total.plus(total(cell.tally for cell in cells))
        return Manifest(run, after, upto, *all_rides, by_day(cells), blocks)


def _block(run: int, after: int, upto: int, cells: list[Cell]) -> Block:
    return Block(
        after,
        upto,
        min(cell.first for cell in cells),
        max(cell.last for cell in cells),
        min(cell.day for cell in cells),
        max(cell.day for cell in cells),
        *total(cell.tally for cell in cells),
        run,
    )
