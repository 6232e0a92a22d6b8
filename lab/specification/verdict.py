"""What the judge decides, from what its witnesses say: Postgres, the warehouse, its ledger, totals.

A ride is its metres, 0 if it is gone; its id is its place. The digest of a block is its rides.
Nothing here takes a step: `judge` does.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lab.specification.explorer import Value

BLOCK = 2  # rides, at most
POSTGRES, WAREHOUSE, NOBODY = "Postgres", "the warehouse", "nobody"

Rides = tuple[int, ...]
Blocks = tuple[Rides, ...]
Sums = tuple[int, int]  # metres, and how many rides
Findings = tuple[tuple[object, ...], ...]


class Total(Value, frozen=True):
    name: int
    position: int = 0
    sums: Sums = (0, 0)
    reset: tuple[int, Sums] | None = None  # pending: a position, and what the rides to there are


class Witnesses(NamedTuple):
    postgres: Rides  # as the judge's session sees them
    fakes: int  # records of another kind, which somebody put in with the ids of rides
    sent: int  # records, as the streamer counts them, less what a person knows to be gone
    warehouse: Blocks
    ledger: Blocks
    is_noted: bool  # whether a run has noted the ledger's hash in Postgres
    totals: tuple[Total, ...]
    proven: int  # a total has agreed with Postgres up to here, in a run that completed
    open: Findings  # what the last run held


class Verdict:
    """Of a run that compares all old blocks, or only the newest, and those with findings."""

    def __init__(self, said: Witnesses, *, everything: bool, broken: str, approved: bool = False):
        self.said, self.broken, self.approved = said, broken, approved
        right_length = [*map(len, said.ledger)] == [*map(len, said.warehouse)]
        self.trusted = right_length and (said.is_noted or broken == "altered-ledger")
        held = [finding[1] for finding in said.open if finding[0] == "block"]
        numbers = range(len(said.warehouse))
        looks = {n for n in numbers if everything or not self.trusted or n in held}
        looks |= {*numbers[-1:], *((t.position - 1) // BLOCK for t in said.totals)}
        self.theirs = tuple(self.block(n, said.warehouse, n in looks) for n in numbers)
        ends = zip(cut(said.postgres), said.warehouse, strict=False)
        ours = tuple(mine[: len(theirs)] for mine, theirs in ends)
        self.mine = tuple(self.block(n, ours, n in looks) for n in numbers)
        self.old = sum(map(len, said.warehouse))
        self.fresh = said.postgres[self.old :]
        self.sides = self._sides()
        self.exact = self.version(self.sides)
        self.held = sorted(n for n, side in self.sides.items() if side != POSTGRES)
        self.records = sums(said.postgres)[1] + said.fakes
        self.missing = self._missing()
        self.distrusts = bool(self.missing) and not approved and broken != "records-uncounted"
        self.publishes = not self.distrusts and (self.trusted or not self.held)
        self.wrong = [each for each in said.totals if self.off(each) != (0, 0)]
        self.resets = self._resets()
        self.findings = self._findings()

    def block(self, number: int, of: Blocks, looks: bool) -> Rides:
        """One at which nobody looks is what the ledger says."""
        return of[number] if looks else self.said.ledger[number]

    def _sides(self) -> dict[int, str]:
        """Who is right, of each block that differs, or is not what the ledger says."""
        blind = self.broken == "sums-only"
        pairs = [*enumerate(zip(self.mine, self.theirs, strict=True))]
        differ = {n for n, (p, w) in pairs if (sums(p) != sums(w) if blind else p != w)}
        if self.trusted and not blind:
            differ |= {n for n, (p, w) in pairs if p == w != self.said.ledger[n]}
        if self.approved or self.broken == "postgres-alone":
            return dict.fromkeys(differ, POSTGRES)
        backed = {n: self._backed(n) for n in differ}
        versions = [dict.fromkeys(differ, side) for side in (POSTGRES, WAREHOUSE)]
        versions += [backed] if NOBODY not in backed.values() else []
        return {n: self._side(n, backed[n], versions) for n in differ}

    def _backed(self, n: int) -> str:
        """What the ledger says."""
        digest = self.said.ledger[n] if self.trusted else None
        return {self.mine[n]: POSTGRES, self.theirs[n]: WAREHOUSE}.get(digest or (), NOBODY)

    def _side(self, n: int, backed: str, versions: list[dict[int, str]]) -> str:
        if self.trusted and backed == NOBODY and self.broken != "ledger-ignored":
            return NOBODY  # both copies are altered: what one of them adds up to is chance
        votes = set[str]()
        for each in self.said.totals:
            within = max(0, each.position - n * BLOCK)
            if sums(self.mine[n][:within]) != sums(self.theirs[n][:within]):
                exact = ((v[n], sums(self.version(v)[: each.position])) for v in versions)
                found = {side for side, added in exact if added == each.sums}
                votes |= (found or {NOBODY}) if len(found) < 2 else set()
        if votes and backed != NOBODY and self.broken != "silent-ledger":
            votes.add(backed)
        decided = (votes or {backed}) - {NOBODY}
        return decided.pop() if len(decided) == 1 else NOBODY

    def version(self, sides: dict[int, str]) -> Rides:
        """All rides: Postgres', but for the blocks of which the warehouse is said to be right."""
        pairs = enumerate(zip(self.mine, self.theirs, strict=True))
        old = (w if sides.get(n, POSTGRES) != POSTGRES else p for n, (p, w) in pairs)
        return (*(ride for block in old for ride in block), *self.fresh)

    def _missing(self) -> int:
        """How many records Postgres shows less than were sent, apart from those that are named."""
        pairs = [zip(self.mine[n], self.theirs[n], strict=True) for n in self.held]
        gone = sum(1 for pair in pairs for ours, theirs in pair if theirs and not ours)
        return self.said.sent - self.records - gone

    def off(self, total: Total) -> Sums:
        metres, count = sums(self.exact[: total.position])
        return total.sums[0] - metres, total.sums[1] - count

    def _resets(self) -> list[Total]:
        """Of the wrong totals: those of which a second witness says so."""
        if not self.publishes or NOBODY in self.sides.values():
            return []
        if self.approved or self.broken == "no-second-witness":
            return self.wrong
        offs, all_ = [self.off(each) for each in self.wrong], self.said.totals
        if len(all_) == len(offs) > 1 and len({*offs}) == 1:
            return []  # the judge is suspect
        return [each for each in self.wrong if self._is_confirmed(each)]

    def _is_confirmed(self, total: Total) -> bool:
        if any(n * BLOCK < total.position for n in self.held):
            return False
        if self.broken == "count-as-witness" and self.off(total)[1] != 0:
            return True
        reset_to = max(total.position, len(self.said.postgres))  # all rides up to there count
        agreeing = [u.position for u in self.said.totals if u not in self.wrong and u.sums[1]]
        if self.broken == "witness-behind":
            agreeing = [reset_to for at in agreeing if at >= self.said.proven]
        upto = self.old if self.broken == "copy-as-witness" else self.said.proven
        return max([upto, *agreeing]) >= reset_to

    @property
    def proven(self) -> int:
        """Up to where two witnesses have said what Postgres says, once this run completes."""
        agree = [u.position for u in self.said.totals if u not in self.wrong and u.sums[1]]
        return max([self.said.proven, *agree]) if self.publishes else self.said.proven

    def _findings(self) -> Findings:
        blocks = self.sides if self.distrusts else self.held
        totals = (each for each in self.wrong if each not in self.resets)
        return (
            *((("records", self.missing),) if self.distrusts else ()),
            *(("block", n, self.mine[n], self.theirs[n]) for n in sorted(blocks)),
            *(("total", each.name, self.off(each)) for each in totals),
        )

    def published(self) -> tuple[Blocks, Blocks]:
        """The warehouse and the ledger, with the new rides, and with what was read again."""
        files, ledger = [*self.said.warehouse], [*(self.said.ledger if self.trusted else ())]
        for n in self.sides.keys() - {*self.held}:
            files[n] = self.mine[n]
            ledger[n : n + 1] = [files[n]] if self.trusted else []
        whole = cut((*(ride for block in files for ride in block), *self.fresh))
        if not self.trusted:
            return whole, whole
        grown = (n for n, block in enumerate(whole) if n >= len(files) or block != files[n])
        for n in grown:
            ledger[n : n + 1] = [whole[n]]
        return whole, tuple(ledger)


def sums(rides: Iterable[int]) -> Sums:
    rides = tuple(rides)
    return sum(rides), sum(map(bool, rides))


def cut(rides: Rides) -> Blocks:
    return tuple(rides[at : at + BLOCK] for at in range(0, len(rides), BLOCK))
