"""Who is right: two witnesses decide, and Postgres alone never lowers a sum.

P is what Postgres says of a block of rides now, W what the warehouse's files say, L the digest that
the ledger has of what both once were, and C the totals, each up to its own position. Only where
something differs is there anything to decide:

    P = C != W    read again from Postgres: the files were changed
    W = C != P    held: somebody changed Postgres
    all differ    held

A total decides by its metres and its rides: it is C for whichever version of the rides adds up to
it. The ledger votes beside the totals, and alone where no total stands past a block, or where both
versions have the same sums: P = L != W, or W = L != P. Votes that contradict each other hold it.

A total that is not the sum of the rides (P = W != C) is reset if a second witness confirms what
this session sees, up to where the reset leads:

* another total that agrees there or beyond, since it has counted those rides from the log;
* an earlier run, in which a total agreed so far. That the warehouse has the rides is not enough:
  it has copied them from Postgres, perhaps after somebody had altered them.

If two or more totals are all off by the same, it is the judge that is suspect: they are held.

A total that holds rides out is right if it is the sum of the others. It testifies to nothing that
it has not counted: of two versions that differ in such a ride alone it fits both, and it confirms
what Postgres says only up to the first of them, since a reset takes them all in.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from analytics.ledger import Ledger
from analytics.look import Look
from analytics.pieces import Piece, between, total
from analytics.result import Compared, CountedRatings, Tally


class Right(Enum):
    """Whose version of a block is right."""

    BOTH = "they are equal"
    POSTGRES = "two witnesses are for Postgres"
    WAREHOUSE = "two witnesses are for the warehouse"
    NOBODY = "no two witnesses agree"


class Standing(NamedTuple):
    """A total of the rides up to a position, but for those that it holds out."""

    position: int
    tally: Tally
    held_out: Sequence[int] = ()  # their positions: it is no witness of these


class Sums:
    """The sum of the rides up to any position at which a total stands, in each version.

    `base` is the ledger of what the warehouse had, unless all rides are `new`.
    """

    def __init__(self, base: Ledger, new: Sequence[Piece], looks: Sequence[Look]) -> None:
        self._base = base
        self._new = new
        self._looks = {look.after: look for look in looks}

    def upto(self, position: int, of_warehouse: Collection[int] = ()) -> Tally:
        """All rides up to `position`, a cut: as Postgres has them, but for some blocks.

        `of_warehouse` are the beginnings of those that count as the warehouse has them.
        """
        parts = [between(self._new, self._base.position, position)]
        for block in self._base.blocks:
            if block.after >= position:
                break
            if look := self._looks.get(block.after):
                parts.append(_upto(look.of_postgres, position))
            elif block.first <= position:  # a total may stand below the first ride
                parts.append(block.tally)
        for after in of_warehouse:
            look = self._looks[after]
            parts.append(_upto(look.of_warehouse, position))
            parts.append(_negative(_upto(look.of_postgres, position)))
        return total(parts)

    def of(self, ids: Collection[int], of_warehouse: Collection[int] = ()) -> Tally:
        """The rides of these ids, in the same versions. There are cuts before and after each."""
        return total(between(self._around(id_, of_warehouse), id_ - 1, id_) for id_ in ids)

    def _around(self, id_: int, of_warehouse: Collection[int]) -> Sequence[Piece]:
        """The pieces among which this ride is, if it is there."""
        for look in self._looks.values():
            if look.after < id_ <= look.known:
                if look.after in of_warehouse:
                    return look.of_warehouse
                return look.of_postgres
        return self._new


def _upto(pieces: Sequence[Piece], position: int) -> Tally:
    return total(piece.tally for piece in pieces if piece.last <= position)


def _negative(of: Tally) -> Tally:
    return Tally(-of.rides, -of.distance)


def by_ledger(look: Look, proven: str | None) -> Right:
    """What the ledger says; `proven` is its digest, None if there is none to be believed."""
    if look.postgres == look.warehouse:
        return Right.BOTH if proven in (None, look.postgres) else Right.NOBODY
    if proven == look.postgres:
        return Right.POSTGRES
    return Right.WAREHOUSE if proven == look.warehouse else Right.NOBODY


def decide(
    looks: Sequence[Look],
    proven: Mapping[int, str | None],
    totals: Sequence[Standing],
    sums: Sums,
) -> dict[int, Right]:
    """Whose version of each block is right, by the block's beginning."""
    said = {look.after: by_ledger(look, proven.get(look.after)) for look in looks}
    differ = [look.after for look in looks if look.postgres != look.warehouse]
    if not differ:
        return said
    versions = {
        Right.POSTGRES: dict.fromkeys(differ, Right.POSTGRES),
        Right.WAREHOUSE: dict.fromkeys(differ, Right.WAREHOUSE),
        Right.BOTH: {after: said[after] for after in differ},  # as the ledger says
    }
    if Right.NOBODY in versions[Right.BOTH].values():
        del versions[Right.BOTH]
    fitting = [(one.position, _fitting(one, versions.values(), sums)) for one in totals]
    for after in differ:
        votes = set[Right]()
        for position, fits in fitting:
            found = {blocks[after] for blocks in fits}
            if position > after and len(found) < 2:  # with two, it is the sum of both
                votes |= found or {Right.NOBODY}
        if said[after] in (Right.POSTGRES, Right.WAREHOUSE):
            votes.add(said[after])
        decided = votes - {Right.NOBODY}  # a total that is wrong by itself does not decide
        if votes and not (proven.get(after) and said[after] is Right.NOBODY):
            said[after] = decided.pop() if len(decided) == 1 else Right.NOBODY
    return said


def _fitting(
    one: Standing, versions: Iterable[Mapping[int, Right]], sums: Sums
) -> list[Mapping[int, Right]]:
    """The versions of the rides that add up to a total."""
    found = []
    for blocks in versions:
        of_warehouse = [
            after
            for after, right in blocks.items()
            if right is Right.WAREHOUSE and after < one.position
        ]
        has = one.tally.plus(sums.of(one.held_out, of_warehouse))
        if sums.upto(one.position, of_warehouse) == has:
            found.append(blocks)
    return found


class Counted(NamedTuple):
    """What somebody has counted up to a position, and by how much that is off: (number, sum)."""

    position: int
    off: tuple[int, object]
    rows: int  # that the rides or ratings up to there are
    stray: bool = False
    first_held_out: int | None = None

    @property
    def agrees(self) -> bool:
        return not self.stray and self.off == (0, 0)

    @property
    def confirms(self) -> int:
        """Up to where it says what there is: it has not counted what it holds out."""
        if self.first_held_out is None:
            return self.position
        return min(self.position, self.first_held_out - 1)


def may_be_reset(counted: Sequence[Counted], confirmed: int, reset_to: int = 0) -> list[bool]:
    """For each that is wrong: whether a second witness says what Postgres says.

    `confirmed` is the position up to which one does, and `reset_to` where a reset leads: it takes
    in all rides up to there.
    """
    wrong = [each for each in counted if not each.agrees]
    suspect = len(counted) > 1 and len(wrong) == len(counted) and len({c.off for c in wrong}) == 1
    if suspect and any(each.off != (0, 0) for each in wrong):
        return [False] * len(counted)
    return [max(each.position, reset_to) <= confirmed for each in counted]


def confirmed_upto(counted: Sequence[Counted], proven: int) -> int:
    """How far others than Postgres say what it says: who agrees, or an earlier run."""
    return max([proven, *(each.confirms for each in counted if each.agrees and each.rows)])


def denied(compared: Iterable[Compared | CountedRatings], upto: int) -> bool:
    """Whether somebody contradicts rows past `upto`, the last that others confirm."""
    return any(each.wrong and not each.stray and each.position > upto for each in compared)
