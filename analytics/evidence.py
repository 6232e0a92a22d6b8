"""What the witnesses say: what the warehouse is known to hold, and what this run has read.

A warehouse is a witness if its files can be read and are this database's. Its ledger is another one
if it is the very file that Postgres has noted. Without that, or after a stranger's commit, a run
reads everything again on both sides, and believes nobody's sums.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256

from analytics import ownership
from analytics.ledger import Block, Broken, Ledger
from analytics.look import Ask, Look
from analytics.ownership import History
from analytics.pieces import BLOCK, Piece, number_of
from analytics.result import Result
from analytics.rides import UNREADABLE
from analytics.rows import Differences
from analytics.session import cause
from analytics.versions import strangers
from analytics.votes import Sums
from analytics.warehouse import Warehouse

NOTHING = sha256(b"").hexdigest()  # the digest of no rides


@dataclass(frozen=True)
class Known:
    """What the warehouse held before this run.

    `everything` says that all of it has to be read again, on both sides. `extent` is the position
    up to which it has the rides.
    """

    ledger: Ledger = field(default_factory=Ledger)
    is_witness: bool = False  # its files can be read
    is_proven: bool = False  # the ledger is the one that Postgres has noted
    everything: bool = True
    extent: int = 0
    strangers: tuple[str, ...] = ()  # versions in which somebody else changed rides
    repaired: bool = False  # stranded rides were counted since, which it lacks

    @property
    def remembers(self) -> int:
        """Up to where anybody but Postgres still says what rides earlier runs have seen."""
        return self.extent if self.is_witness or self.is_proven else 0

    @property
    def base(self) -> Ledger:
        """What this run builds on."""
        return Ledger() if self.everything else self.ledger

    @cached_property
    def _blocks(self) -> dict[int, Block]:
        """By the beginning of each, or by the number of the rides in it if everything is read."""
        if self.everything:
            return {number_of(block.last): block for block in self.ledger.blocks}
        return {block.after: block for block in self.ledger.blocks}

    def _is_one_of_several(self, number: int) -> bool:
        return self.everything and any(
            number_of(block.first) <= number <= number_of(block.last)
            for block in self.ledger.blocks
            if block.is_several
        )

    def proven(self, after: int, number: int) -> str | None:
        """The digest that a block once had; None if there is no telling."""
        if not self.is_proven or self._is_one_of_several(number):
            return None
        block = self._blocks.get(number if self.everything else after)
        return block.digest if block else NOTHING

    def for_the_files(self, looks: Sequence[Look]) -> list[Look]:
        """Looks at blocks whose files can't be read: as the ledger has them, where that differs."""
        found = []
        for look in looks:
            block = self._blocks.get(look.number)
            digest = block.digest if block else NOTHING
            if digest != look.postgres:
                pieces = (Piece(block.first, block.last, *block.tally),) if block else ()
                gone = sum(piece.rides for piece in pieces) - sum(
                    piece.rides for piece in look.of_postgres
                )
                differ = Differences(0, (), gone, (), look.postgres)
                found.append(look._replace(warehouse=digest, of_warehouse=pieces, differ=differ))
        return found


@dataclass
class Evidence:
    """What a run has read: new rides, old ones from both sides, and how many records there are."""

    known: Known
    new: list[Piece] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    records: int = 0

    @property
    def sums(self) -> Sums:
        return Sums(self.known.base, self.new, self.looks)

    @property
    def gone(self) -> int:
        """How many rides the warehouse has more than Postgres, as far as anybody has looked."""
        return sum(look.differ.gone for look in self.looks)


def known(
    warehouse: Warehouse,
    ours: History,
    ledgers: Sequence[str],
    *,
    full: bool,
    had_rides: bool,
    result: Result,
) -> Known:
    """What the warehouse holds; the result notes why it is not believed.

    `ledgers` are those that Postgres knows of, the newest last. Raises Unavailable when it is
    another database's.
    """
    notes, be = result.notes, "is" if result.repairing else "would be"
    reason = ownership.why_rebuild(warehouse.root, warehouse.owners(), ours)
    if repaired := bool(reason) and _was_repaired(warehouse, ours, ledgers):
        notes.append("Stranded rides were counted since the last run: all of it is read again.")
        reason = ""
    if not reason:
        try:
            committed = warehouse.committed_run()
            files = warehouse.table.files()
        except UNREADABLE as error:
            reason = f"is broken ({cause(error)})"
        else:
            if committed is None and had_rides:
                reason = f"{warehouse.root} is gone"
        if reason and (ledger := newest_ledger(warehouse, ours, ledgers)):
            unless = "unless its ledger shows that rides were changed"
            notes.append(f"The warehouse {reason}: it {be} rebuilt, {unless}.")
            return Known(ledger, is_proven=True, extent=ledger.position)
    if reason:
        notes.append(f"The warehouse {reason}: it {be} rebuilt from the first ride.")
        return Known()
    if committed is None:
        return Known()
    extent = max((file.last for file in files), default=0)
    try:
        if committed.ledger not in ledgers:
            raise Broken("its ledger is not one that a run in this database has written")
        ledger = warehouse.table.ledger(committed.ledger).looked_at_by(result.started_at)
    except Broken as error:
        notes.append(
            f"The warehouse can't be taken at its word ({error}): all of it is read again."
        )
        newest = newest_ledger(warehouse, ours, ledgers)
        if newest and newest.position >= extent:  # the log was set back, or names another
            return Known(newest, is_witness=True, is_proven=True, extent=newest.position)
        return Known(is_witness=True, extent=extent, repaired=repaired)
    full = full or repaired
    found = Known(ledger, True, True, full, ledger.position, repaired=repaired)
    if others := strangers(warehouse.table.store):
        return replace(found, everything=True, strangers=tuple(others))
    if ledger.total.rides != sum(file.rides for file in files):
        notes.append(
            "The warehouse has another number of rides than its ledger: all is read again."
        )
        return replace(found, everything=True)
    # Where a digest is of several blocks, each gets its own.
    return replace(found, everything=any(block.is_several for block in ledger.blocks) or full)


def _was_repaired(warehouse: Warehouse, ours: History, ledgers: Sequence[str]) -> bool:
    """Whether nothing but a repair parts this database from the newest run, which it knows."""
    try:
        committed = warehouse.committed_run()
    except UNREADABLE:
        return False
    if committed is None or committed.ledger not in ledgers:
        return False
    return ownership.was_repaired(committed.owners[-1], ours)


def newest_ledger(warehouse: Warehouse, ours: History, ledgers: Sequence[str]) -> Ledger | None:
    """The ledger that a run has noted last, if its file is there and the rides are ours."""
    for digest in reversed(ledgers):
        with suppress(Broken):
            ledger = warehouse.table.ledger(digest)
            if ledger.owners and ownership.has_all(ledger.owners[-1], ours):
                return ledger
    return None


def asks(blocks: Sequence[Block], marks: Sequence[int], position: int) -> list[Ask]:
    """Blocks of the ledger, each as far as it may have rides by now."""
    return [
        _ask(block.after, block.upto, min(_end(block.upto), max(position, block.upto)), marks)
        for block in blocks
    ]


def asks_for_all(
    known: Known, numbers: Collection[int], marks: Sequence[int], position: int
) -> list[Ask]:
    """All that the warehouse has, in the blocks of these numbers and of the ledger's.

    Whatever lies between two of them belongs to the later one.
    """
    of_ledger = {number_of(block.last) for block in known.ledger.blocks}
    last = number_of(known.extent)
    found = list[Ask]()
    for number in sorted({n for n in (*of_ledger, *numbers) if n <= last} | {last}):
        after = found[-1].upto if found else 0
        end = (number + 1) * BLOCK
        found.append(
            _ask(after, min(end, known.extent), min(end, max(position, known.extent)), marks)
        )
    return found


def _end(upto: int) -> int:
    return -(-upto // BLOCK) * BLOCK


def _ask(after: int, known: int, upto: int, marks: Sequence[int]) -> Ask:
    cuts = sorted({mark for mark in marks if after < mark < known} | {known})
    return Ask(after, known, upto, (), tuple(cuts))
