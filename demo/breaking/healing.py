"""Waits until totals, minutes and receipts have healed, and says so of each.

The rollup and the receipts are waited for where they run, the receipts only beside the simulator:
any other receiver may be away for a reason of its own.
"""

import time
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, auto
from typing import NamedTuple, Protocol

import psycopg
from psycopg.rows import class_row

from demo.breaking.running_fleet import RECEIPTS, ROLLUP, SIMULATOR, TOTALS, RunningFleet
from unified_log.database import one_row

LOOK_EVERY = 0.1  # seconds
# Seconds. A receipt that was put off three times comes after 1 + 3 + 9, or when its receiver says;
# one that the simulator never accepts is dead at once.
PATIENCE = 60.0

EXACT = "totals are exact"
NEWEST_RIDE = "SELECT coalesce(max(id), 0) FROM rides"
MINUTES = "SELECT complete_to >= %s FROM rollup_state"
# Not by `complete_to` alone: that moves only a few times in each SWEEP_AFTER.
RECEIVED = """
    SELECT NOT EXISTS (
        SELECT FROM receipts_state JOIN rides ON id > complete_to AND id <= %s
        LEFT JOIN receipts ON ride_id = id WHERE outcome IS NULL
    )
"""
# One statement, so one snapshot.
COMPARED = """
    SELECT name, position AS ride, total_distance AS total,
           (SELECT coalesce(sum(distance), 0) FROM rides WHERE id <= position) AS exact
    FROM checkpoints JOIN consumer_states USING (kind, name)
    WHERE name = ANY(%s)
    ORDER BY name
"""


class NotHealed(Exception):
    """The fleet did not heal in time; the message says what is missing."""


class Kind(Enum):
    """What a line is: only the live page tells the kinds apart."""

    NEWS = auto()
    CLAIM = auto()  # something is well


class Say(Protocol):
    """Is given each line."""

    def __call__(self, line: str, kind: Kind = Kind.NEWS, /) -> None: ...


class ComparedTotal(NamedTuple):
    """A consumer's position, its total, and the sum of the rides up to there, in metres."""

    name: str
    ride: int  # its position
    total: Decimal
    exact: Decimal

    @property
    def is_exact(self) -> bool:
        return self.total == self.exact

    def __str__(self) -> str:
        compared = (
            "which is the exact sum of the rides"
            if self.is_exact
            else f"which is {self.total - self.exact:+} m off: the rides add up to {self.exact:,} m"
        )
        return f"{self.name} at position {self.ride:,}: total {self.total:,} m, {compared}"


class Healing:
    """Of one fleet. Raises psycopg.Error."""

    def __init__(self, connection: psycopg.Connection, fleet: RunningFleet, say: Say) -> None:
        self._connection = connection
        self._consumers = fleet.names(TOTALS)
        self._say = say
        # What is true up to a ride in a fleet that has healed.
        self._awaited: dict[str, Callable[[int], bool]] = {EXACT: self._totals_are_exact}
        if fleet.of(ROLLUP):
            self._awaited["minutes are complete"] = self._asked(MINUTES)
        if fleet.of(RECEIPTS) and fleet.of(SIMULATOR):
            self._awaited["receipts are delivered or dead letters"] = self._asked(RECEIVED)

    def totals(self) -> list[ComparedTotal]:
        """One for each consumer that already has a total."""
        cursor = self._connection.cursor(row_factory=class_row(ComparedTotal))
        return cursor.execute(COMPARED, [self._consumers]).fetchall()

    def newest_ride(self) -> int:
        [newest] = one_row(self._connection.execute(NEWEST_RIDE))
        return int(newest)

    def _totals_are_exact(self, upto: int) -> bool:
        found = self.totals()
        return len(found) == len(self._consumers) and all(
            each.ride >= upto and each.is_exact for each in found
        )

    def _asked(self, question: str) -> Callable[[int], bool]:
        return lambda upto: self._connection.execute(question, [upto]).fetchone() == (True,)

    def wait(self, upto: int) -> None:
        """Wait until all have coped with the rides up to `upto`, and say so. Raises NotHealed."""
        began, missing = time.monotonic(), dict(self._awaited)
        while missing:
            took = time.monotonic() - began
            for claim, is_so in list(missing.items()):
                if is_so(upto):
                    del missing[claim]
                    self._say(f"All {claim} up to ride {upto:,}, after {took:.1f} s.", Kind.CLAIM)
                    if claim == EXACT:
                        self.show_totals()
                elif took > PATIENCE:
                    self.show_totals()
                    raise NotHealed(f"not all {claim} up to ride {upto:,} after {PATIENCE:.0f} s")
            time.sleep(LOOK_EVERY)
        self._say(f"Healed: all is well up to ride {upto:,}, {took:.1f} s later.", Kind.CLAIM)

    def show_totals(self) -> None:
        for each in self.totals():
            self._say(f"  {each}")


def seconds_until(claim: Callable[[], bool], patience: float = PATIENCE) -> float | None:
    """Seconds until `claim` became true; None if it did not within `patience` seconds."""
    began = time.monotonic()
    while not claim():
        if time.monotonic() - began > patience:
            return None
        time.sleep(LOOK_EVERY)
    return time.monotonic() - began
