"""For how long nobody has been seen at work, as far as the looks of this process tell.

A session ends whenever a process or a server starts over, and a look may fall into that moment. So
one look alone does not tell what is dead from what is back in a moment; nor do two, which may each
fall into a start of its own when they are seconds apart.
"""

import time
from dataclasses import replace
from typing import NamedTuple

from watch.facts import Database, Lead, Reader

LOOKS = 3  # in a row that somebody must be missing in


class _Missing(NamedTuple):
    since: float
    looks: int


class Absence:
    """Remembers since when each is missing."""

    def __init__(self) -> None:
        self._missing: dict[tuple[str, str], _Missing] = {}

    def forget(self) -> None:
        """Begin anew, after a look that could not tell."""
        self._missing = {}

    def noted(self, database: Database) -> Database:
        """The same facts, with the seconds for which each is missing by now."""
        now = time.monotonic()
        missing = {(r.kind, r.name) for r in database.readers if r.processes == 0}
        leads = {"streamer": database.streamer, "rollup": database.rollup.lead}
        missing |= {("lead", name) for name, lead in leads.items() if not lead.leads}
        if not database.receipts.workers:
            missing.add(("receipts", "workers"))
        first = _Missing(now, 0)
        before = {key: self._missing.get(key, first) for key in missing}
        self._missing = {key: _Missing(since, n + 1) for key, (since, n) in before.items()}
        seconds = {
            key: now - since for key, (since, looks) in self._missing.items() if looks >= LOOKS
        }

        def reader(found: Reader) -> Reader:
            return replace(found, absent_seconds=seconds.get((found.kind, found.name), 0))

        def lead(name: str) -> Lead:
            return replace(leads[name], vacant_seconds=seconds.get(("lead", name), 0))

        return replace(
            database,
            streamer=lead("streamer"),
            rollup=replace(database.rollup, lead=lead("rollup")),
            receipts=replace(
                database.receipts, absent_seconds=seconds.get(("receipts", "workers"), 0)
            ),
            readers=tuple(map(reader, database.readers)),
        )
