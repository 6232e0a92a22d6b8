"""Who should be at work and is not, and for how long, as far as the looks of this process tell.

A session ends whenever a process or a server starts over, and a look may fall into that moment. So
one look does not tell a dead process from one that restarts. Nor do two: when they are seconds
apart, each may fall into a restart of its own.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

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
        if reader.kind == "total":
            yield called(reader), reader.processes != 0


class _Missing(NamedTuple):
    since: float
    looks: int


class Absence:
    """Remembers since when each process is missing."""

    def __init__(self) -> None:
        self._missing: dict[str, _Missing] = {}

    def forget(self) -> None:
        """Begin anew, after a look that could not tell."""
        self._missing = {}

    def noted(self, database: Database) -> Database:
        """The same facts, with the seconds for which each process has been missing."""
        now = time.monotonic()
        missing = [who for who, is_there in expected(database) if not is_there]
        first = _Missing(now, 0)
        before = {key: self._missing.get(key, first) for key in missing}
        self._missing = {key: _Missing(since, n + 1) for key, (since, n) in before.items()}
        absent = {
            key: now - since if looks >= LOOKS else 0
            for key, (since, looks) in self._missing.items()
        }
        return replace(database, absent=absent)
