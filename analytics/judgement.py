"""What a run makes of its evidence: who is right, which totals are wrong, what is held.

Nothing here reads or writes anything. A person's approval turns all that is held into what Postgres
says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

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
    Mismatch,
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
        known = self.evidence.known
        proven = {look.after: known.proven(look.after, look.number) for look in looks}
        voted = votes.decide(looks, proven, totals, self.evidence.sums)
        voted |= dict.fromkeys(self._stranded, Right.POSTGRES)
        # Without the ledger's vote, nobody is right who was not with it.
        return voted if known.is_proven else voted | dict.fromkeys(self._held_before, Right.NOBODY)

    @cached_property
    def _stranded(self) -> set[int]:
        """The blocks that differ in nothing but rides that a repair has counted since.

        Were they inserted by hand, there would be more records than were sent, or left out.
        """
        repaired = self.evidence.known.repaired
        return {look.after for look in self.evidence.looks if repaired and look.differ.are_new}

    @property
    def _differ(self) -> list[Look]:
        return [
            look for look in self.evidence.looks
            if look.postgres != look.warehouse and look.after not in self._stranded
        ]  # fmt: skip

    @property
    def _held_before(self) -> list[int]:
        """The blocks that differ, and that the last run held."""
        held = [each for each in (self.last.findings if self.last else ()) if _is_of_rides(each)]
        return [
            look.after
            for look in self._differ
            if any(each["after"] < look.known and look.after < each["upto"] for each in held)
        ]

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
        return [look for look in self._differ if self.sides[look.after] is Right.POSTGRES]

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
        expected = self.frozen.records_sent - self.records_gone - self._named
        # Of rides that a held block has more, a repair has counted some as sent, or all.
        more = sum(max(-look.differ.gone, 0) for look in self.held_looks)
        counted = more if self.evidence.known.repaired else 0
        return not expected - counted <= self.evidence.records <= expected

    @property
    def _named(self) -> int:
        """How many rides of those that are held the warehouse has more than Postgres."""
        return sum(look.differ.gone for look in self.held_looks)

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
        return max(votes.confirmed_upto(self._counted, self.remembered["totals"]), self.later)

    @property
    def remembered(self) -> dict[str, int]:
        """How far each has agreed in an earlier run, if more than Postgres still says of what.

        Of ratings, the ledger alone does. Whoever alters rides may alter `runs`, too.
        """
        known = self.evidence.known
        upto = {"totals": known.remembers, "ratings": known.ledger.position}
        before = self.last.proven if self.last else {}
        return {what: min(before.get(what, 0), end) for what, end in upto.items()}

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

    @property
    def is_suspect(self) -> bool:
        """Whether no total agrees, and none is to be reset: no earlier run confirms anything."""
        return all(each.wrong for each in self.compared) and not self.resets

    @staticmethod
    def _is_past(one: Compared, held: int | None) -> bool:
        return held is not None and one.position > held

    @property
    def proven(self) -> int:
        """How far a total has ever agreed, by this run or an earlier one, if this one publishes."""
        before = self.remembered["totals"]  # a run that died may have seen more than was published
        return votes.confirmed_upto(self._counted, before) if self.is_proven else before

    # ------------------------------------------------------------ the other parts

    def holds_receipts(self, receipts: ReceiptsVerdict | None) -> bool:
        """Whether the sweep would deliver receipts of rides that are held."""
        first = min(receipts.missing.ids, default=0) if receipts else 0
        held = any(look.known >= first for look in self.held_looks)
        return held or self.distrusts_postgres or bool(self.forgotten)

    # ------------------------------------------------------------------ the whole

    @property
    def may_publish(self) -> bool:
        """Whether the warehouse gets the new rides: not where that replaces a held block."""
        replaced = self.evidence.known.everything and self.held_looks
        return not (
            self.distrusts_postgres
            or replaced
            or self.forgotten
            or self._denies_new
            or self._would_forget
        )

    @property
    def _would_forget(self) -> bool:
        """Whether new rides in a block on which nobody agrees would take the ledger's digest."""
        return any(
            look.known < piece.last <= look.upto
            for look in self.of(Right.NOBODY)
            for piece in self.evidence.new
        )

    @property
    def _denies_new(self) -> bool:
        """Whether new rides are others than a total has counted: perhaps they are put back."""
        known = self.evidence.known.extent
        return (
            not self.approved
            and known < max((piece.last for piece in self.evidence.new), default=0)
            and votes.denied(self.compared, max(known, self.confirmed, self._counted_past(known)))
        )

    def _counted_past(self, known: int) -> int:
        """Up to where a total that agrees has counted all new rides: it may hold out older ones."""
        return max(
            (
                each.position
                for one, each in zip(self.frozen.consumers, self.compared, strict=True)
                if not each.differs and max(one.held_out, default=0) <= known
            ),
            default=0,
        )

    @cached_property
    def forgotten(self) -> list[Finding]:
        """Rides that the last run held, where no witness is left that could say more of them."""
        known = self.evidence.known
        if self.approved or known.is_witness or known.is_proven or not self.last:
            return []
        return [
            Finding(each["kind"], each["about"], True, each["key"], each["after"], each["upto"])
            for each in self.last.findings
            if _is_of_rides(each)
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
            found.append(findings.of_records(sent, seen, self._named))
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
            for look in self._differ
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


def _is_of_rides(finding: Mapping[str, Any]) -> bool:
    """Whether it is about rides that are held."""
    return finding["held"] and finding["kind"] in HELD.values()
