"""Who should be at work and is not, and for how long, as far as the looks of this process tell.

A session ends whenever a process or a server starts over, and a look may fall into that moment. So
one look alone does not tell what is dead from what is back in a moment; nor do two, which may each
fall into a start of its own when they are seconds apart.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from watch.facts import Database
from watch.naming import RECEIPTS, ROLLUP, STREAMER, called

LOOKS = 3  # in a row that somebody must be missing in


def expected(database: Database) -> Iterator[tuple[str, bool]]:
    """Who should be at work, and whether they are.

    Receipts and rollup are judged by the rides that there are: a restored database may have lost
    the rollup's checkpoint.
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
    """Remembers since when each is missing."""

    def __init__(self) -> None:
        self._missing: dict[str, _Missing] = {}

    def forget(self) -> None:
        """Begin anew, after a look that could not tell."""
        self._missing = {}

    def noted(self, database: Database) -> Database:
        """The same facts, with the seconds for which each is missing by now."""
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
