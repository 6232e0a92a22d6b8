"""Measures recoveries: how long the totals take to catch up once nothing is broken.

Faults overlap, so they are measured in *chains*. A chain ends when no fault is under way; the fleet
has recovered when every total has counted a ride that was taken after that. A fault that begins
before the fleet has recovered prolongs the chain. A recovery that takes too long is a finding.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

import psycopg

from lab.chaos.nemesis import Nemesis
from lab.chaos.observer import Onlooker
from rocket_rides import database
from rocket_rides.errors import Unavailable

LONGEST = 10.0  # seconds that a recovery may take
PAUSE = 0.05
STANDS = """
    SELECT (SELECT coalesce(max(id), 0) FROM rides), min(last_ride_id)
    FROM checkpoints WHERE kind = 'total' HAVING count(*) = %s
"""


class Recovery(NamedTuple):
    """Seconds from the end of a chain until every total had counted a ride taken after it."""

    seconds: float
    after: str  # the fault that ended last


class Recoveries(Onlooker):
    """Measures each recovery, on the database that `url` leads to, with so many totals."""

    def __init__(self, url: Callable[[], str], totals: int, nemesis: Nemesis) -> None:
        super().__init__("watch on recoveries")
        self.all: list[Recovery] = []
        self._url = url
        self._totals = totals
        self._nemesis = nemesis
        self._recovered_from = 0  # faults

    def look_on(self) -> None:
        while not self.ending.wait(PAUSE):
            if self._nemesis.is_calm and not self.is_up_to_date:
                self._measure(len(self._nemesis.struck))

    @property
    def is_up_to_date(self) -> bool:
        """Whether the fleet has recovered from all faults until now."""
        return len(self._nemesis.struck) == self._recovered_from

    def _measure(self, struck: int) -> None:
        """Measure until the fleet has recovered, or the next fault begins."""
        began, broken, taken = time.monotonic(), self._nemesis.broken, None
        last = self._nemesis.struck[struck - 1]
        while self._nemesis.broken == broken and not self.ending.wait(PAUSE):
            newest, slowest = self._stand()
            taken = newest if taken is None else taken
            if taken is not None and slowest > taken:
                seconds = time.monotonic() - began
                self.all.append(Recovery(seconds, f"{last.kind} of {last.hit}"))
                self._recovered_from = struck
                return

    def _stand(self) -> tuple[int | None, int]:
        """The newest ride, None while Postgres is down, and the ride of the slowest total."""
        try:
            with closing(database.connect(self._url(), "chaos")) as connection:
                row = connection.execute(STANDS, [self._totals]).fetchone()
        except (psycopg.Error, Unavailable):
            row = None
        return row or (None, -1)


def too_slow(recoveries: Iterable[Recovery], longest: float) -> Iterator[str]:
    """A finding for each recovery that took longer than `longest` seconds."""
    for each in recoveries:
        if each.seconds > longest:
            yield (
                f"after {each.after} it took {each.seconds:.1f} s until rides were counted, "
                f"and may take {longest:.0f} s"
            )
