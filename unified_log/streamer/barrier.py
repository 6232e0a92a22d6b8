"""The order barrier: up to which position is the outbox settled?

A record's id, drawn from a sequence, is its position in the log.

A sequence assigns numbers when rows are inserted, but rows appear when transactions commit: a lower
id can appear after a higher one. A position is settled when no transaction is open that could still
commit it or a lower one. Only settled records may enter the log.

Before it draws a number, a transaction locks the sequence (RowExclusiveLock), and it keeps that
lock until it ends, even if it rolls back to a savepoint. So: read the sequence, *then* list who
holds that lock. Every open transaction that drew a number up to the one read is in the list; once
all of those have ended, everything up to there is settled, no matter who came later.

It does not matter into which table a number went, or how it was drawn: so a new kind of record is
watched before its table is even committed. Transactions that never drew are not waited for, except
those that read the view `pg_sequences`, which takes the same lock.
"""

import logging
import time
from typing import NamedTuple

import psycopg

from unified_log.database import LAST_DRAWN, one_row

logger = logging.getLogger(__name__)

# virtualtransaction also names prepared transactions, which have no session.
WRITERS = """
    SELECT DISTINCT virtualtransaction
    FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'log_position'::regclass
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND mode = 'RowExclusiveLock' AND granted
"""

WHO_IS_WAITED_FOR = """
    SELECT CASE WHEN pid IS NULL THEN 'a prepared transaction: see pg_prepared_xacts'
        ELSE concat(
            'session ', pid, ' (', coalesce(nullif(application_name, ''), '?'), ', user ',
            usename, ', ', state, ', transaction open for ',
            round(extract(epoch FROM clock_timestamp() - xact_start)), ' s): ',
            left(regexp_replace(query, '\\s+', ' ', 'g'), 80))
        END
    FROM pg_locks LEFT JOIN pg_stat_activity activity USING (pid)
    WHERE virtualtransaction = ANY(%s) AND relation = 'log_position'::regclass
      AND mode = 'RowExclusiveLock'
"""

SHORTEST_PAUSE, LONGEST_PAUSE = 0.0005, 0.2  # seconds between looks while writers are waited for
FIRST_NOTICE = 1.0  # seconds
NOTICE_EVERY = 10.0


class Wait(NamedTuple):
    """All up to `position` is settled once `writers`, open when it was read, have ended."""

    position: int
    writers: frozenset[str]


class Barrier:
    """Tells the highest settled position, when asked. Never blocks; raises psycopg.Error."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._settled = 0
        self._wait: Wait | None = None
        self._wait_began = self._next_notice = 0.0

    @property
    def waiting(self) -> bool:
        """Whether the last look still waits for writers."""
        return self._wait is not None

    @property
    def pause(self) -> float:
        """Seconds until the next look at the writers: a tenth of the time they have taken."""
        waited = time.monotonic() - self._wait_began
        return min(max(SHORTEST_PAUSE, waited / 10), LONGEST_PAUSE)

    def settled(self) -> int:
        """The highest position known to be settled. One statement when nothing is new."""
        if self._wait is None:
            position = self._last_drawn()
            if position == self._settled:
                return position
            self._wait = Wait(position, self._writers())
            self._wait_began = time.monotonic()
            self._next_notice = self._wait_began + FIRST_NOTICE
        else:
            self._wait = Wait(self._wait.position, self._wait.writers & self._writers())
        if self._wait.writers:
            self._notice(self._wait.writers)
        else:
            self._settled = self._wait.position
            self._wait = None
        return self._settled

    def _last_drawn(self) -> int:
        return int(one_row(self._connection.execute(LAST_DRAWN))[0])

    def _writers(self) -> frozenset[str]:
        return frozenset(row[0] for row in self._connection.execute(WRITERS))

    def _notice(self, writers: frozenset[str]) -> None:
        now = time.monotonic()
        if now >= self._next_notice:
            self._next_notice = now + NOTICE_EVERY
            for (who,) in self._connection.execute(WHO_IS_WAITED_FOR, [list(writers)]):
                logger.warning("the log waits until this transaction ends: %s", who)
