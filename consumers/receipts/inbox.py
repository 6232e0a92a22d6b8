"""The loop that reads the log into the inbox. It never waits for a delivery.

A worker is given entries by the group, puts their rides into the inbox, and only then acknowledges
them. So whoever was given a pending entry is about to do so, or has died: such entries are claimed
after CLAIM_AFTER, and a worker's own at once when it starts anew. Records of other types pass.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from consumers.receipts.group import Group
from consumers.receipts.statements import INBOX, KEEP_MALFORMED
from consumers.rides import TYPE, ride
from unified_log import spans
from unified_log.database import one_row
from unified_log.log import Entry, Invalid, decode
from unified_log.readers.committed import Ignored, KnownTerms, is_committed
from unified_log.readers.report import Report
from unified_log.tracing import Trace, fields
from unified_log.words import count

logger = logging.getLogger("consumer")

RIDE = TYPE.encode()
BATCH = 1000  # entries
LOOKS = 3  # looks in CLAIM_AFTER at what others have left pending
# Seconds. If a read waited longer, sleep this long before its entries are taken in: by then the
# streamer has committed them, and the totals, which somebody may wait for, had the processors.
GIVE_WAY = 0.005


@dataclass
class Inbox:
    """One session of a worker's reading."""

    connection: psycopg.Connection
    group: Group
    claim_after: float  # seconds
    report: Report
    has_news: Callable[[bool], object]  # rides came: has the streamer committed all of them?
    _terms: KnownTerms = field(default_factory=KnownTerms)
    _is_new: bool = True
    _look_at: float = 0.0  # for what others have left pending

    def run_once(self, *, wait: float = 0) -> None:
        """Take in one batch of entries; waits up to `wait` seconds for the first.

        Raises psycopg.Error, redis.RedisError or StateLost: then what was read stays pending. It
        also raises if the group was deleted; the next session makes it anew, and reads from the
        start.
        """
        if entries := self._left_behind() or self._new(wait):
            self._take_in(entries)

    def _left_behind(self) -> list[Entry]:
        """What a member has read and not acknowledged in time; our own, whenever it was."""
        if self._is_new:
            self.group.make()
            found = self.group.take_over(BATCH, 0, self.group.member)
            self._is_new = bool(found)  # there may be more
        elif time.monotonic() < self._look_at:
            return []
        else:
            found = self.group.take_over(BATCH, self.claim_after)
            if not found:  # else there may be more
                self._look_at = time.monotonic() + self.claim_after / LOOKS
        if found:
            logger.info("%s took over %s", self.group.member, count(len(found), "entry"))
        return found

    def _new(self, wait: float) -> list[Entry]:
        began = time.monotonic()
        entries = self.group.read(BATCH, wait)
        if entries and time.monotonic() - began > GIVE_WAY:
            time.sleep(GIVE_WAY)
        return entries

    def _take_in(self, entries: list[Entry]) -> None:
        bounds = self._terms.learn(self._terms.ask(self.connection).fetchone())
        rides: dict[int, Trace | None] = {}
        passed, ignored = 0, Ignored()
        for entry in entries:
            try:
                record = decode(entry.fields)
                if not is_committed(record, bounds):
                    ignored.add(record, bounds)
                elif record.type == RIDE:
                    rides[ride(record).id] = record.trace
                else:
                    passed += 1
            except Invalid as why:
                self._keep_malformed(entry, str(why))
        values = {
            "rides": list(rides),
            "traceparents": [trace and trace.parent for trace in rides.values()],
            "tracestates": [trace and trace.state for trace in rides.values()],
            "worker": self.group.member,
            "ignored": ignored.total,
            "passed": passed,
        }
        traces = filter(None, rides.values())
        with spans.batch_taken(self.group.log.name, self.group.name, len(rides), traces):
            [queued] = one_row(self.connection.execute(INBOX, values))
        self.report.ignored(ignored)
        if queued:
            self.has_news(max(rides) <= bounds.last_sent)
        self.group.acknowledge([entry.redis_id for entry in entries])

    def _keep_malformed(self, entry: Entry, reason: str) -> None:
        group, worker = self.group.name, self.group.member
        kept = {"redis_id": entry.redis_id, "fields": entry.beginning, "reason": reason}
        values = kept | {"group": group, "worker": worker}
        if self.connection.execute(KEEP_MALFORMED, values).rowcount:  # for the first time
            extra = fields([entry.trace])
            words = "%s met a malformed entry, %s: %s"
            logger.warning(words, worker, entry.redis_id, reason, extra=extra)
