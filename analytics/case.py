"""The case that a run judges: it reads what the witnesses say, and proves everything by it."""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import psycopg
from pyspark import SparkContext

from analytics import (
    closings,
    findings,
    judged_minutes,
    judged_ratings,
    proofs,
    records,
    rotation,
    runs,
)
from analytics.balances import AGREES, Balances, number_in
from analytics.evidence import NOTHING, Evidence, Known, asks, asks_for_all
from analytics.freeze import Frozen
from analytics.judgement import Judgement
from analytics.ledger import Block, Broken, Ledger, Rated
from analytics.look import Look
from analytics.minutes import Minutes
from analytics.pieces import number_of
from analytics.pieces import total as summed
from analytics.proofs import outbox, ratings, receipts, rollup
from analytics.readers import carried_over, missing
from analytics.result import (
    CountedRatings,
    Mismatch,
    Proved,
    RatingsVerdict,
    Result,
    RollupVerdict,
    WrongMinute,
)
from analytics.rides import Rides
from analytics.runs import Past, Run
from unified_log.errors import Unavailable

# What they had counted up to the frozen position, if the rides since are right. Who holds any out
# does not confirm those after it.
LATER = """
    SELECT position, consumer_states.rides - count(rides.id),
           total_distance - coalesce(sum(distance), 0)
    FROM checkpoints JOIN consumer_states USING (kind, name)
    LEFT JOIN rides ON rides.id > %(frozen)s AND rides.id <= position
    WHERE name = ANY(%(names)s) AND position >= %(frozen)s AND NOT EXISTS (
        SELECT FROM held_out_records held
        WHERE held.kind = 'total' AND held.name = consumer_states.name
    )
    GROUP BY name, position, consumer_states.rides, total_distance
"""


@dataclass
class Case:
    """All that a run has read, and what it has found by that."""

    connection: psycopg.Connection
    spark: SparkContext
    rides: Rides
    known: Known
    frozen: Frozen
    last: Past | None
    now: datetime
    chance: random.Random
    reread_days: int
    shown: Callable[[str], AbstractContextManager[object]]
    result: Result

    evidence: Evidence = field(init=False)
    judgement: Judgement = field(init=False)
    ledger: Ledger = field(init=False)  # that this run leaves, if it publishes
    approval: int | None = field(default=None, init=False)
    balances: Balances = field(init=False)  # of the closings
    ratings: Ledger = field(default_factory=Ledger, init=False)  # the ledger with new ratings
    minutes: list[WrongMinute] = field(default_factory=list, init=False)  # to be computed anew
    recounts: list[CountedRatings] = field(default_factory=list, init=False)

    @property
    def _found(self) -> Sequence[Mapping[str, Any]]:
        """What the last run has found: this one looks at all of that again."""
        return self.last.findings if self.last else ()

    def read(self) -> None:
        """Extract the new rides, count all records, and compare old rides with Postgres.

        Where a block is disputed, all are looked at: else the next run would find others, and an
        approval would never be for what it finds.
        """
        self.evidence = Evidence(self.known)
        self.balances = Balances(closings.read(self.connection), self.known.ledger.closings)
        position = self.frozen.position
        # Where a total is wanted, and where the warehouse ends: to tell new rides from old ones.
        stand = {min(consumer.position, position) for consumer in self.frozen.consumers}
        # And around each ride that a total holds out: both sides say what it is.
        held_out = {id_ for each in self.frozen.consumers for id_ in each.held_out}
        around = {mark for id_ in held_out for mark in (id_ - 1, id_) if mark <= position}
        self.marks = sorted(stand | around | {position, self.known.base.position})
        # In threads meanwhile: each keeps Postgres and tasks busy, but hardly the driver.
        with ThreadPoolExecutor() as pool:
            counted = pool.submit(self._count_records, position)
            looks = pool.submit(self._look_at_some, position)
            cuts = pool.submit(self._look_at_cuts)
            self.evidence.new = self.rides.extract(self.known.base.position, position, self.marks)
            self.evidence.records, self.evidence.looks = counted.result(), looks.result()
            self.balances.cuts = cuts.result()
        if self.known.everything:
            self._look_at_all()
            return
        differing = [look for look in self.balances.cuts.values() if look.differ.rides]
        self._look_at_unseen((look.after, look.known) for look in differing)
        if self._lacks_records() or any(map(self._is_disputed, self.evidence.looks)):
            self._look_at_unseen([(0, self.known.base.position)])

    def _look_at_cuts(self) -> dict[int, Look]:
        """The blocks that closings cut, up to there, by their positions."""
        everything = self.known.everything
        some = self.balances.chosen(self.known.base.position, self._found, self.chance)
        chosen = self.balances.valid if everything else some
        asked = [closings.cut(each.position) for each in chosen]
        return {look.known: look for look in self.rides.look(asked, with_files=not everything)}

    def _count_records(self, position: int) -> int:
        start = self.frozen.history.start
        cuts = records.ranges(self.known.ledger, start, position)
        with self.shown("Counting records"):
            return records.seen(self.connection, self.spark, self.rides.url, cuts)

    def _is_disputed(self, look: Look) -> bool:
        """Whether the witnesses of a block say different things."""
        proven = self.known.proven(look.after, look.number)
        return len({look.postgres, look.warehouse, proven} - {None}) > 1

    def _lacks_records(self) -> bool:
        """Whether more or less is there than was sent, and the last run has not said so."""
        gone = self.last.records_gone if self.last else 0
        sent = self.frozen.records_sent - gone
        if self.evidence.records + self.evidence.gone == sent:
            return False
        known = findings.of_records(sent, self.evidence.records).key
        return not any(
            each["kind"] == findings.RECORDS_MISSING and each["key"] == known
            for each in self._found
        )

    def _look_at_some(self, position: int) -> list[Look]:
        base = self.known.base
        ago = rotation.elapsed(self.last.started_at if self.last else None, self.now)
        blocks = rotation.chosen(
            base, self.marks, self._found, ago, self.reread_days, self.chance,
        )  # fmt: skip
        self.result.verified = len(blocks)
        self.result.rides_reread = sum(block.rides for block in blocks)
        return self.rides.look(asks(blocks, self.marks, position))

    def _look_at(self, blocks: Sequence[Block]) -> None:
        more = self.rides.look(asks(blocks, self.marks, self.frozen.position))
        self.evidence.looks = sorted([*self.evidence.looks, *more])
        self.result.verified += len(more)
        self.result.rides_reread += sum(block.rides for block in blocks)

    def _look_at_all(self) -> None:
        """Compare all blocks by their digests, and as rows those that differ, or have grown.

        Where the files can't be read, the ledger says what they once were.
        """
        known, position = self.known, self.frozen.position
        if not known.extent:
            return
        wanted = asks_for_all(known, self.rides.new.digests.keys(), self.marks, position)
        try:
            in_files = self.rides.digests_in_files(wanted) if known.is_witness else {}
        except Broken as error:
            self.result.notes.append(f"The warehouse can't be read ({error}).")
            self.evidence.known = self.known = known = replace(known, is_witness=False)
            in_files = {}
        self.result.verified = len(wanted)
        self.result.rides_reread = sum(piece.rides for piece in self.evidence.new)
        unlike = []
        for ask in wanted:
            number = number_of(ask.upto)
            ours = self.rides.new.digests.get(number, NOTHING)
            others = {in_files.get(ask.after), known.proven(ask.after, number)} - {None}
            if others and (ask.known < ask.upto or others != {ours}):
                unlike.append(ask)
        looks = self.rides.look(unlike, with_files=known.is_witness)
        if any(
            look.postgres_whole != self.rides.new.digests.get(look.number, NOTHING)
            for look in looks if look.upto <= position
        ):  # fmt: skip
            raise Unavailable("rides were changed while they were read: run again")
        self.evidence.looks = looks if known.is_witness else known.for_the_files(looks)

    def prove(self) -> None:
        """Decide who is right, and compare all else with the rides and ratings."""
        connection, result, known = self.connection, self.result, self.known
        base, position = known.base, self.frozen.position
        result.notes += proofs.unproved(connection)
        result.outbox = outbox.prove(connection)
        proved = receipts.proved(connection, self._found) if base.blocks else Proved()
        result.receipts = receipts.prove(connection, proved, position, self.chance)
        rollup_verdict, minutes = self._prove_rollup()
        self._look_at_unseen((one.after, one.upto) for one in minutes)
        if any(map(self._is_disputed, self.evidence.looks)):
            self._look_at_unseen([(0, base.position)])
        proven_ratings = ratings.prove(
            connection, self.spark, self.rides.url, self.shown, known.ledger, position,
            self._ratings_again, self.now,
        )  # fmt: skip
        result.ratings, self.ratings = proven_ratings.verdict, proven_ratings.ledger
        judgement = Judgement(self.evidence, self.frozen, self.last, self.now)
        judgement = replace(judgement, later=self._later(judgement))
        self._tell(judgement, rollup_verdict, minutes)
        if result.repairing:
            self.approval = runs.approved(connection, findings.digest(result.findings))
        if self.approval is not None:
            judgement = replace(judgement, approved=True)
            result.ratings, self.ratings = proven_ratings.approved, proven_ratings.approved_ledger
            self._tell(judgement, rollup_verdict, minutes)
            result.approval = self.approval

    def _prove_rollup(self) -> tuple[RollupVerdict, list[Mismatch]]:
        connection, base = self.connection, self.known.base

        def minutes_of(days: Sequence[date]) -> Minutes:
            return self.rides.minutes_of(days, with_old=bool(base.blocks))

        complete = rollup.complete_to(connection)
        if self.known.everything:
            days = rollup.days_rolled_up(connection)
        else:
            upto = min(complete, base.position)
            days = rollup.unproved_days(connection, rollup.proved_upto(connection), upto)
        days |= self.rides.new_days()
        for finding in self._found:
            days |= {date.fromisoformat(day) for day in finding.get("days", ())}
        doubted = {day for look in self.evidence.looks for day in look.differ.days}
        return rollup.prove(
            connection, minutes_of, days | doubted, self.frozen.position, complete, doubted
        )

    def _later(self, judgement: Judgement) -> int:
        """How far the totals that agree have counted by now, if they still agree.

        They may have stood a few rides behind another total, or the rollup, when all were frozen.
        """
        agreeing = [each.name for each in judgement.compared if not each.wrong]
        if not agreeing:
            return 0
        position = self.frozen.position
        exact = judgement.exact(position)
        rows = self.connection.execute(LATER, {"frozen": position, "names": agreeing})
        return max((at for at, *rest in rows if tuple(rest) == exact), default=0)

    def _look_at_unseen(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Compare the blocks of these ranges at which nobody has looked: both sides differ."""
        seen = {look.after for look in self.evidence.looks}
        found = {block for ends in ranges for block in self.known.base.within(*ends)}
        if more := [block for block in found if block.after not in seen]:
            self._look_at(sorted(more, key=lambda block: block.after))

    def _ratings_again(self, full: Sequence[Rated]) -> list[Rated]:
        """Blocks of ratings to read once more.

        At random, those not read for longest, and those that the last run has found changed.
        """
        if self.known.everything:
            return [*full]
        ago = rotation.elapsed(self.last.started_at if self.last else None, self.now)
        oldest = sorted(full, key=lambda rated: (rated.looked_at, rated.after))
        due = math.ceil(len(full) * min(ago / self.reread_days, 1 / rotation.MOST))
        some = self.chance.sample(list(full), min(rotation.AT_RANDOM, len(full)))
        changed = [each for each in self._found if each["kind"] == findings.RATINGS_CHANGED]
        ends = {number_in(each["key"]) for each in changed}
        found = [rated for rated in full if rated.upto in ends]
        return sorted({*oldest[:due], *some, *found}, key=lambda rated: rated.after)

    @property
    def proven(self) -> dict[str, int]:
        """How far a total, and a consumer of ratings, has ever agreed in a run that published."""
        judgement = self.judgement
        if not judgement.may_publish:
            return self.last.proven if self.last else {}
        rated = judged_ratings.proven(judgement, self.result.ratings)
        return {"totals": judgement.proven, "ratings": rated}

    def _tell(self, judgement: Judgement, verdict: RollupVerdict, minutes: list[Mismatch]) -> None:
        """Write what was found into the result."""
        self.judgement, result = judgement, self.result
        result.consumers = judgement.compared
        result.mismatches = judgement.mismatches()
        denied = judged_ratings.denied(judgement, result.ratings)
        rated = self.known.ledger if denied else self.ratings
        self.ledger = judgement.ledger(self.rides.new.digests).with_ratings(rated.ratings)
        result.total = self.ledger.total
        result.last_ride_id = self.ledger.blocks[-1].last if self.ledger.blocks else 0
        result.new = summed(piece.tally for piece in self.evidence.new)
        outside = bool(verdict.wrong) and rollup.has_rides_outside(
            self.connection, self.frozen.position
        )
        self.minutes, of_minutes = judged_minutes.judged(judgement, verdict, minutes, outside)
        result.rollup = verdict
        if len(self.minutes) < len(verdict.wrong):  # the next run looks at these days again
            result.rollup = replace(verdict, proved_before=rollup.proved_upto(self.connection))
        self.recounts, of_ratings = judged_ratings.judged(
            judgement, result.ratings or RatingsVerdict()
        )
        others = findings.of_proofs(
            result.receipts, result.outbox, held=judgement.holds_receipts(result.receipts)
        )
        recounting = [
            *(("total", each.name) for each in result.consumers if each.differs and each.recounts),
            *(
                ("ratings", each.name)
                for each in (result.ratings.consumers if result.ratings else ())
                if each.differs and each.recounts
            ),
        ]
        gone = missing(self.connection, self.frozen, self.last, recounting)
        result.closings, of_closings = self.balances.compared(
            self.ledger, judgement.held_looks, approved=judgement.approved
        )
        self.ledger = self.ledger.with_closings(self.balances.carried(approved=judgement.approved))
        agree = [each for each in result.closings if each.outcome == AGREES]
        result.proves_from = agree[-1] if agree and not self.known.everything else None
        result.findings = [
            *judgement.found(), *of_closings, *gone, *of_minutes, *of_ratings, *others
        ]  # fmt: skip
        looked_at = ["readers", "records", "rollup", "receipts", "outbox", "ratings", "totals"]
        if result.verified:
            looked_at.append("warehouse")
        if self.balances.rows or of_closings:
            looked_at.append("closings")
        result.verdicts = findings.verdicts(result.findings, looked_at)

    def complete(self, run: Run, ledger: Ledger) -> None:
        """Complete the run's row, in the caller's transaction, and use up the approval."""
        result = self.result
        if self.approval is not None:
            runs.use_approval(self.connection, self.approval, run)
        run.complete(
            result.status, result.position, result.verdicts, result.findings,
            carried_over(self.connection, self.frozen, self.last),
            result.rides_reread, ledger.oldest_look, self.judgement.records_gone,
            self.proven,
        )  # fmt: skip
