"""Whether the fleet has healed: totals, minutes and receipts, each waited for and said.

The rollup and the receipts are waited for where they run. Receipts are not where one has waited for
long before anything was broken: then it is their receiver that is away.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import psycopg

from demo.breaking import totals
from demo.breaking.running_fleet import RECEIPTS, ROLLUP, RunningFleet
from demo.breaking.saying import Kind, Say
from rocket_rides.database import one_row

LOOK_EVERY = 0.1  # seconds
PATIENCE = 30.0  # seconds
# A receipt that was put off again and again comes after 1 + 3 + 9 seconds, or soon afterwards.
RECEIPTS_PATIENCE = 60.0
LONG_OVERDUE = 60.0  # seconds that a ride may have waited for its receipt

NEWEST_RIDE = "SELECT coalesce(max(id), 0) FROM rides"
MINUTES = "SELECT complete_to >= %s FROM rollup_state"
# Its `complete_to` rises with each sweep only.
RECEIVED = """
    SELECT NOT EXISTS (
        SELECT FROM receipts_state JOIN rides ON id > complete_to AND id <= %s
        LEFT JOIN receipts ON ride_id = id WHERE outcome IS NULL
    )
"""
OVERDUE = """
    SELECT coalesce((
        SELECT created_at < now() - make_interval(secs => %s)
        FROM receipts_state JOIN rides ON id > complete_to
        LEFT JOIN receipts ON ride_id = id WHERE outcome IS NULL ORDER BY id LIMIT 1
    ), false)
"""


class NotHealed(Exception):
    """The fleet did not heal in time; the message says what is missing."""


class Awaited(NamedTuple):
    """What is true of all, up to a ride, in a fleet that has healed; and seconds to wait for it."""

    is_there: Callable[[int], bool]
    claim: str
    patience: float


class Healing:
    """Of one fleet. Raises psycopg.Error."""

    def __init__(self, connection: psycopg.Connection, fleet: RunningFleet, say: Say) -> None:
        self._connection = connection
        self._consumers = [each.name for each in fleet.consumers]
        self._say = say
        self._awaited = [Awaited(self._totals_are_exact, "totals are exact", PATIENCE)]
        if ROLLUP in fleet.modules:
            minutes = self._asked(MINUTES)
            self._awaited.append(Awaited(minutes, "minutes are complete", PATIENCE))
        if RECEIPTS in fleet.modules and not self._asked(OVERDUE)(LONG_OVERDUE):
            claim = "receipts are delivered or dead letters"
            self._awaited.append(Awaited(self._asked(RECEIVED), claim, RECEIPTS_PATIENCE))

    def totals(self) -> list[totals.ComparedTotal]:
        """One for each consumer that already has a total."""
        return totals.compared(self._connection, self._consumers)

    def newest_ride(self) -> int:
        [newest] = one_row(self._connection.execute(NEWEST_RIDE))
        return int(newest)

    def _totals_are_exact(self, upto: int) -> bool:
        found = self.totals()
        return len(found) == len(self._consumers) and all(
            each.ride >= upto and each.is_exact for each in found
        )

    def _asked(self, question: str) -> Callable[[float], bool]:
        def is_so(value: float) -> bool:
            return self._connection.execute(question, [value]).fetchone() == (True,)

        return is_so

    def wait(self, upto: int) -> None:
        """Wait until all have coped with the rides up to `upto`, and say so. Raises NotHealed."""
        began, missing = time.monotonic(), list(self._awaited)
        while missing:
            for each in list(missing):
                took = time.monotonic() - began
                if each.is_there(upto):
                    missing.remove(each)
                    line = f"All {each.claim} up to ride {upto:,}, after {took:.1f} s."
                    self._say(line, Kind.CLAIM)
                    if each is self._awaited[0]:
                        self.show_totals(Kind.CLAIM)
                elif took > each.patience:
                    self.show_totals()
                    late = f"not all {each.claim} up to ride {upto:,} after {each.patience:.0f} s"
                    raise NotHealed(late)
            time.sleep(LOOK_EVERY)
        self._say(f"Healed: all is well up to ride {upto:,}, {took:.1f} s later.", Kind.CLAIM)

    def show_totals(self, kind: Kind = Kind.NEWS) -> None:
        for each in self.totals():
            self._say(f"  {each}", kind)


def seconds_until(claim: Callable[[], bool], patience: float = PATIENCE) -> float | None:
    """Seconds until `claim` became true; None if it did not within `patience` seconds."""
    began = time.monotonic()
    while not claim():
        if time.monotonic() - began > patience:
            return None
        time.sleep(LOOK_EVERY)
    return time.monotonic() - began
