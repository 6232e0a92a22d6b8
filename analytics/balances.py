"""The closings of a run: which it compares, with what, and what is found of them.

A mismatch is held, and changes nothing: a person reopens the closing, or puts right what was
altered. Where a run holds rides below a closing, somebody has to decide about these first.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics import closings
from analytics.closings import Row
from analytics.findings import CLOSING_CHANGED, CLOSING_WRONG, Finding
from analytics.ledger import Closing, Ledger
from analytics.look import Look
from analytics.result import ComparedClosing
from rocket_rides.words import metres
from unified_log.words import count

MOST = 8  # in a run: the newest, and others at random, beside those that were found wrong
AGREES, DIFFERS, ALTERED = "agrees", "differs", "was altered"
WAITS, NOT_NOW = "waits for what is held", "not compared this time"


@dataclass
class Balances:
    """What Postgres says of the closings, and the looks at the blocks that they cut."""

    rows: Sequence[Row]
    known: Sequence[Closing]  # that the last run has seen
    cuts: dict[int, Look] = field(default_factory=dict)  # by the position
    doubted: set[int] = field(default_factory=set)  # of which something was found

    @property
    def valid(self) -> list[Closing]:
        return closings.valid(self.rows)

    @property
    def broken(self) -> set[int]:
        """Those that are not what they say themselves: no approval makes them so."""
        return {number for number, _ in closings.altered(self.rows)}

    def chosen(
        self, upto: int, found: Sequence[Mapping[str, Any]], chance: random.Random
    ) -> list[Closing]:
        """Those that a run compares, of which the warehouse has all rides up to `upto`.

        Whatever the last run has `found` is among them.
        """
        there = [each for each in self.valid if each.position <= upto]
        wrong = {number_in(each["key"]) for each in found if each["kind"] == CLOSING_WRONG}
        some = chance.sample(there[:-1], min(MOST - 1, len(there[:-1])))
        return [each for each in there if each in some or each == there[-1] or each.id in wrong]

    def compared(
        self, ledger: Ledger, held: Iterable[Look], *, approved: bool
    ) -> tuple[list[ComparedClosing], list[Finding]]:
        """Each closing beside the ledger that the run leaves, and what is found.

        Where nothing is held, the blocks that they cut are as Postgres has them. An approval is
        also for what Postgres says of closings that an earlier run has seen otherwise.
        """
        told = list(closings.altered(self.rows, () if approved else self.known))
        hashes = {row.closing.id: row.closing.hash for row in self.rows}
        broken = self.broken
        found = [
            _altered(number, what, hashes.get(number, ""), is_broken=number in broken)
            for number, what in told
        ]
        first_held = min((look.after for look in held), default=None)
        outcomes = list[ComparedClosing]()
        for each in self.valid:
            cut, outcome = self.cuts.get(each.position), NOT_NOW
            if each.id in {number for number, _ in told}:
                outcome = ALTERED
            elif first_held is not None and first_held < each.position:
                outcome = WAITS
            elif each.position > ledger.position:
                outcome = DIFFERS
                found.append(_wrong(each, f"lies past position {ledger.position}, the last"))
            elif cut:
                balance = closings.balance(ledger, each.position, cut.of_postgres, cut.postgres)
                outcome = AGREES if balance == closings.says(each) else DIFFERS
                if outcome == DIFFERS:
                    found.append(_wrong(each, _both(each, balance)))
            sums = each.rides, each.distance
            if outcome in (ALTERED, DIFFERS):
                self.doubted.add(each.id)
            outcomes.append(ComparedClosing(each.id, each.position, *sums, each.closed_at, outcome))
        return outcomes, found

    def carried(self, *, approved: bool) -> list[Closing]:
        """What the ledger holds: each as a run has first found it right, but for an approval."""
        now = {row.closing.id: row.closing for row in self.rows}
        before = {each.id: each for each in self.known}
        if approved:
            as_before = {number: before[number] for number in self.broken & before.keys()}
            return [as_before.get(number, each) for number, each in sorted(now.items())]
        new = {number: now[number] for number in now.keys() - before.keys() - self.doubted}
        reopened = {
            number: each
            for number, each in now.items()
            if each.reopened and number in before and each.hash == before[number].hash
        }
        return [each for _, each in sorted({**before, **new, **reopened}.items())]


def number_in(key: str) -> int:
    """The number with which a finding's key begins: of its closing, or the end of its block."""
    return int(key.split()[0])


def _altered(number: int, what: str, now: str, *, is_broken: bool) -> Finding:
    """Its key has the hash, so that an approval is for that row alone."""
    kind = CLOSING_WRONG if is_broken else CLOSING_CHANGED
    return Finding(kind, f"closing {number} {what}", True, f"{number} {what} {now}")


def _wrong(closing: Closing, what: str) -> Finding:
    return Finding(CLOSING_WRONG, f"closing {closing.id} {what}", True, f"{closing.id} {what}")


def _both(closing: Closing, found: closings.Balance) -> str:
    said = f"{count(closing.rides, 'ride')}, {metres(closing.distance)} m"
    tally = found.tally
    if tally == (closing.rides, closing.distance):
        return f"says other rides up to position {closing.position}, with the same sum"
    return (
        f"says {said} up to position {closing.position}, and there are"
        f" {count(tally.rides, 'ride')}, {metres(tally.distance)} m"
    )
