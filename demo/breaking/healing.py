"""Whether the fleet has healed: totals, minutes and receipts, each waited for and said.

The rollup and the receipts are waited for where they run. Receipts are not where one has waited for
long before anything was broken: then it is their receiver that is away.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import psycopg

from demo.breaking.compared_totals import ComparedTotals
from demo.breaking.running_fleet import RunningFleet

LOOK_EVERY = 0.1  # seconds
PATIENCE = 30.0  # seconds
# A receipt that was put off again and again comes after 1 + 3 + 9 seconds, or soon afterwards.
RECEIPTS_PATIENCE = 60.0
LONG_OVERDUE = 60.0  # seconds that a ride may have waited for its receipt

MINUTES = "SELECT complete_to >= %s FROM rollup_state"
# Its `complete_to` rises with each sweep only.
RECEIPTS = """
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


class Claim(str):
    """A line that says that something is well. Who has not looked since can't see it yet."""


class _Awaited(NamedTuple):
    """What is true of all, up to a ride, in a fleet that has healed; and seconds to wait for it."""

    is_there: Callable[[int], bool]
    claim: str
    patience: float


class Healing:
    """Of one fleet. Raises psycopg.Error."""

    def __init__(
        self, connection: psycopg.Connection, fleet: RunningFleet, say: Callable[[str], None]
    ) -> None:
        self._connection = connection
        self._say = say
        self.totals = ComparedTotals(connection, [each.name for each in fleet.consumers])
        self._awaited = [_Awaited(self.totals.are_exact, "totals are exact", PATIENCE)]
        self._unawaited = []
        if fleet.runs_a_rollup:
            self._awaited.append(_Awaited(self._asked(MINUTES), "minutes are complete", PATIENCE))
        else:
            self._unawaited.append("No rollup runs, so minutes are not waited for.")
        if not fleet.delivers_receipts:
            self._unawaited.append("Nobody delivers receipts, so they are not waited for.")
        elif self._asked(OVERDUE)(LONG_OVERDUE):
            self._unawaited.append("Receipts were late before, so they are not waited for.")
        else:
            claim = "receipts are delivered or dead letters"
            self._awaited.append(_Awaited(self._asked(RECEIPTS), claim, RECEIPTS_PATIENCE))

    def _asked(self, question: str) -> Callable[[float], bool]:
        def is_so(value: float) -> bool:
            return self._connection.execute(question, [value]).fetchone() == (True,)

        return is_so

    def wait(self, upto: int) -> None:
        """Wait until all have coped with the rides up to `upto`, and say so. Raises NotHealed."""
        for line in self._unawaited:
            self._say(line)
        began, missing = time.monotonic(), list(self._awaited)
        while True:
            for each in [each for each in missing if each.is_there(upto)]:
                missing.remove(each)
                took = time.monotonic() - began
                self._say(Claim(f"All {each.claim} up to ride {upto:,}, after {took:.1f} s."))
                if each is self._awaited[0]:
                    self.show_totals(Claim)
            if not missing:
                break
            if late := [each for each in missing if time.monotonic() - began > each.patience]:
                self.show_totals()
                claim, patience = late[0].claim, late[0].patience
                raise NotHealed(f"not all {claim} up to ride {upto:,} after {patience:.0f} s")
            time.sleep(LOOK_EVERY)
        self._say(Claim(f"Healed: all is well up to ride {upto:,}, {took:.1f} s later."))

    def show_totals(self, kind: type[str] = str) -> None:
        for each in self.totals.now():
            self._say(kind(f"  {each}"))


def seconds_until(claim: Callable[[], bool], patience: float = PATIENCE) -> float | None:
    """Seconds until `claim` became true; None if it did not within `patience` seconds."""
    began = time.monotonic()
    while not claim():
        if time.monotonic() - began > patience:
            return None
        time.sleep(LOOK_EVERY)
    return time.monotonic() - began
