"""Who should be at work and is not, and for how long, as far as the looks of this process tell.

A session ends whenever a process or a server restarts, and a look may come at that moment. So one
look does not tell a dead process from one that restarts. Nor do two: when they are seconds apart,
each may come during a restart of its own.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

from watch.facts import Database
from watch.naming import RECEIPTS, ROLLUP, STREAMER, called

LOOKS = 3  # in a row in which a process must be missing


def expected(database: Database) -> Iterator[tuple[str, bool]]:
    """Who should be at work, and whether they are.

    Once there are rides, receipts and rollup should be at work, even without a checkpoint: a
    restored database may have lost the rollup's.
    """
    begun = database.rides.newest > 0
    if begun:
        yield STREAMER, database.streamer.leads
    if begun or any(reader.kind == "rollup" for reader in database.readers):
        yield ROLLUP, database.rollup.lead.leads
    if begun:
        yield RECEIPTS, database.receipts.workers > 0
    for reader in database.readers:
        if reader.is_own and reader.kind != "rollup":
            yield called(reader), reader.processes != 0


class Absence:
    """Remembers since when each process has been missing."""

    def __init__(self) -> None:
        self._missing: dict[str, tuple[float, int]] = {}  # since when, in how many looks

    def forget(self) -> None:
        """Begin anew, after a look that could not tell."""
        self._missing = {}

    def noted(self, database: Database) -> Database:
        """The same facts, with the seconds for which each process has been missing."""
        now = time.monotonic()
        before, self._missing = self._missing, {}
        absent: dict[str, float] = {}
        for who, is_there in expected(database):
            if not is_there:
                since, looks = before.get(who, (now, 0))
                self._missing[who] = since, looks + 1
                absent[who] = now - since if looks + 1 >= LOOKS else 0
        return replace(database, absent=absent)
