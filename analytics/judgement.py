"""What a run makes of its evidence: who is right, which totals are wrong, what is held.

Nothing here reads or writes anything. A person's approval turns all that is held into what Postgres
says.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import msgspec

from analytics import findings, votes
from analytics.evidence import Evidence
from analytics.findings import Finding
from analytics.freeze import Frozen, FrozenConsumer
from analytics.ledger import Block, Ledger
from analytics.look import Look
from analytics.pieces import number_of
from analytics.pieces import total as summed
from analytics.result import (
    Compared,
    CountedRatings,
    Mismatch,
    RatingsVerdict,
    ReceiptsVerdict,
    Tally,
)
from analytics.runs import Past
from analytics.votes import Counted, Right, Standing

NAMED_BLOCKS = 20  # the findings on so many blocks name rides
HELD = {Right.WAREHOUSE: findings.RIDES_CHANGED, Right.NOBODY: findings.RIDES_UNDECIDED}


@dataclass(frozen=True)
class Judgement:
    """The evidence, and what follows from it."""

    evidence: Evidence
    frozen: Frozen
    last: Past | None
    now: datetime
    approved: bool = False
    later: int = 0  # a total that agrees has counted all rides up to here by now

    @cached_property
    def voted(self) -> dict[int, Right]:
        """Whose version of each block that was looked at is right, by its beginning."""
        looks = self.evidence.looks
        totals = [
            Standing(
                self._place(each.position), Tally(each.rides, each.total_distance),
                self._held_out(each),
            )
            for each in self.frozen.consumers
        ]  # fmt: skip
        proven = {look.after: self.evidence.known.proven(look.after, look.number) for look in looks}
        return votes.decide(looks, proven, totals, self.evidence.sums)

    @cached_property
    def sides(self) -> dict[int, Right]:
        """Whose version of each block counts, by its beginning: an approval is for Postgres'."""
        if not self.approved:
            return self.voted
        return {
            after: Right.POSTGRES if right in HELD else right for after, right in self.voted.items()
        }

    def _place(self, position: int) -> int:
        return min(position, self.frozen.position)

    def _held_out(self, one: FrozenConsumer) -> list[int]:
        return [position for position in one.held_out if position <= self.frozen.position]

    def of(self, *sides: Right) -> list[Look]:
        return [look for look in self.evidence.looks if self.sides[look.after] in sides]

    @cached_property
    def held_looks(self) -> list[Look]:
        return self.of(Right.WAREHOUSE, Right.NOBODY)

    @property
    def reread(self) -> list[Look]:
        """Those whose rides in the warehouse are to be replaced by Postgres'."""
        return [look for look in self.of(Right.POSTGRES) if look.postgres != look.warehouse]

    # ---------------------------------------------------------------- the records

    @property
    def records_gone(self) -> int:
        """How many records, of those that were sent, a person knows to be gone by now."""
        if self.approved:
            return self.frozen.records_sent - self.evidence.records
        return self.last.records_gone if self.last else 0

    @property
    def distrusts_postgres(self) -> bool:
        """Whether Postgres shows another number of records than were sent, and nobody knows why."""
        named = sum(look.differ.gone for look in self.held_looks)
        expected = self.frozen.records_sent - self.records_gone - named
        return self.evidence.records != expected

    # ----------------------------------------------------------------- the totals

    def exact(self, position: int) -> Tally:
        """The sum of the rides up to a mark, of held blocks as the warehouse has them."""
        return self.evidence.sums.upto(position, self._held_blocks(position))

    def _held_blocks(self, position: int) -> list[int]:
        return [look.after for look in self.held_looks if look.after < position]

    @cached_property
    def compared(self) -> list[Compared]:
        """Each total beside the exact one at the same position.

        A consumer that stands past every frozen record is stray.
        """
        found = []
        for one in self.frozen.consumers:
            at, lacking = self._place(one.position), self._held_out(one)
            exact = self.exact(at)
            held_out = self.evidence.sums.of(lacking, self._held_blocks(at))
            found.append(
                Compared(
                    one.name, one.position, one.total_distance, exact.distance, one.position > at,
                    one.rides, exact.rides, *held_out, min(lacking, default=None), one.recounts,
                )
            )  # fmt: skip
        return found

    @cached_property
    def _counted(self) -> list[Counted]:
        return [
            Counted(
                self._place(each.position), (each.rides_off, each.drift),
                each.exact_rides, each.stray, each.first_held_out,
            )
            for each in self.compared
        ]  # fmt: skip

    @property
    def confirmed(self) -> int:
        """The position up to which somebody beside this session says what Postgres says."""
        proven = self.last.proven.get("totals", 0) if self.last else 0
        known = proven if self._remembers else 0
        return max(votes.confirmed_upto(self._counted, known), self.later)

    @property
    def _remembers(self) -> bool:
        """Whether anybody but Postgres still says what rides an earlier run has seen."""
        return self.evidence.known.is_witness or self.evidence.known.is_proven

    @cached_property
    def may_be_reset(self) -> dict[str, bool]:
        """Of each total that is wrong: whether two witnesses say so."""
        confirmed = votes.may_be_reset(self._counted, self.confirmed, self.frozen.position)
        lowest_held = min((look.after for look in self.held_looks), default=None)
        return {
            each.name: self.is_proven
            and (self.approved or (confirms and not self._is_past(each, lowest_held)))
            for each, confirms in zip(self.compared, confirmed, strict=True)
            if each.wrong
        }

    @staticmethod
    def _is_past(one: Compared, held: int | None) -> bool:
        return held is not None and one.position > held

    def proven(self, ratings: RatingsVerdict | None) -> dict[str, int]:
        """How far a total, and a consumer of ratings, has ever agreed in a run that published."""
        before = self.last.proven if self.last else {}
        if not self.is_proven:
            return before
        if not self._remembers:  # what an earlier run has seen is gone
            before = {}
        rated = _counted_ratings(ratings) if ratings and not ratings.changed else []
        return {
            "totals": votes.confirmed_upto(self._counted, before.get("totals", 0)),
            "ratings": votes.confirmed_upto(rated, before.get("ratings", 0)),
        }

    # ------------------------------------------------------------ the other parts

    def holds_receipts(self, receipts: ReceiptsVerdict | None) -> bool:
        """Whether the sweep would deliver receipts of rides that are held."""
        first = min(receipts.missing.ids, default=0) if receipts else 0
        return self.distrusts_postgres or any(look.known >= first for look in self.held_looks)

    def ratings(self, verdict: RatingsVerdict) -> tuple[list[CountedRatings], list[Finding]]:
        """The consumers that are to recount, and what is found of ratings."""
        changed = [
            Finding(
                findings.RATINGS_CHANGED,
                f"the ratings {was.after + 1} to {was.upto} were changed: {was.ratings} with"
                f" {was.stars} stars before, {ratings} with {stars} stars now",
                True, f"{was.upto} {was.ratings} {was.stars} {ratings} {stars}",
            )
            for was, ratings, stars in verdict.changed
        ]  # fmt: skip
        counted = _counted_ratings(verdict)
        proven = self.last.proven.get("ratings", 0) if self.last and self._remembers else 0
        confirmed = votes.may_be_reset(counted, votes.confirmed_upto(counted, proven))
        wrong = [
            (each, self.approved or (may and not changed and not self.distrusts_postgres))
            for each, may in zip(verdict.consumers, confirmed, strict=True)
            if each in verdict.wrong
        ]
        found = [findings.of_ratings(each, held=not may) for each, may in wrong]
        return [each for each, may in wrong if may], [*changed, *found]

    # ------------------------------------------------------------------ the whole

    @property
    def may_publish(self) -> bool:
        """Whether the warehouse gets the new rides: not where that replaces a held block."""
        replaced = self.evidence.known.everything and self.held_looks
        return not (self.distrusts_postgres or replaced or self.forgotten)

    @cached_property
    def forgotten(self) -> list[Finding]:
        """Rides that the last run held, where no witness is left that could say more of them."""
        known = self.evidence.known
        if self.approved or known.is_witness or known.is_proven or not self.last:
            return []
        return [
            Finding(each["kind"], each["about"], True, each["key"], each["after"], each["upto"])
            for each in self.last.findings
            if each["held"] and each["kind"] in HELD.values()
        ]

    @property
    def is_proven(self) -> bool:
        """Whether two witnesses say what all rides add up to."""
        return self.may_publish and not self.of(Right.NOBODY)

    @property
    def resets(self) -> list[str]:
        return sorted(name for name, may in self.may_be_reset.items() if may)

    def found(self) -> list[Finding]:
        """What is found of the warehouse, the records and the totals."""
        found = [
            findings.of_look(HELD[self.sides[look.after]], look, held=True)
            for look in self.held_looks
        ]
        changed = findings.WAREHOUSE_CHANGED
        found += [
            findings.of_look(HELD.get(self.voted[look.after], changed), look, held=False)
            for look in self.reread
        ]
        found += [
            Finding(changed, f"{stranger} changed the warehouse, and no run wrote it", key=stranger)
            for stranger in self.evidence.known.strangers
        ]
        found += self.forgotten
        found[NAMED_BLOCKS:] = [
            msgspec.structs.replace(each, rides=()) for each in found[NAMED_BLOCKS:]
        ]
        if self.distrusts_postgres:
            seen, sent = self.evidence.records, self.frozen.records_sent - self.records_gone
            found.append(findings.of_records(sent, seen))
        found += [
            findings.of_total(each, held=not self.may_be_reset[each.name])
            for each in self.compared
            if each.wrong
        ]
        return found

    def mismatches(self) -> list[Mismatch]:
        """Ranges of rides on which both sides disagree, with their sums."""
        return [
            Mismatch(
                look.after, look.known,
                summed(piece.tally for piece in look.of_warehouse),
                summed(piece.tally for piece in look.of_postgres),
            )
            for look in self.evidence.looks if look.postgres != look.warehouse
        ]  # fmt: skip

    def ledger(self, digests: dict[int, str]) -> Ledger:
        """The ledger that this run leaves, if it publishes. `digests` are those of new rides."""
        now, base = self.now, self.evidence.known.base
        looked = {look.after: look for look in self.evidence.looks}
        changed, whole = list[Block](), dict(digests)
        for block in base.blocks:
            if (look := looked.get(block.after)) is None:
                continue
            right = self.sides[block.after]
            if right is Right.POSTGRES:
                pieces = look.of_postgres
                ends = (pieces[0].first, pieces[-1].last) if pieces else (block.first, block.last)
                sums = summed(piece.tally for piece in pieces)
                changed.append(Block(block.after, block.upto, *ends, *sums, look.postgres, now))
            elif right is Right.BOTH:
                changed.append(msgspec.structs.replace(block, looked_at=now))
            if look.upto > look.known and look.number == number_of(block.last):
                taken = right in (Right.BOTH, Right.POSTGRES)
                whole[look.number] = look.postgres_whole if taken else look.warehouse_whole
        ledger = base.with_blocks(changed)
        return ledger.extended(self.frozen.position, self.evidence.new, whole, now)


def _counted_ratings(verdict: RatingsVerdict) -> list[Counted]:
    return [
        Counted(each.position, each.off, each.exact_ratings, each.stray, each.first_held_out)
        for each in verdict.consumers
    ]
