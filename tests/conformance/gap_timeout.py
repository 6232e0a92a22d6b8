"""A gap with a time-out: waits a while for a number that is missing, then goes on without it."""

import psycopg

from tests.conformance.naive import Naive, Row

DUE = "SELECT 0, id, key FROM outbox WHERE id > (SELECT id FROM relay) ORDER BY id"
LAST = "SELECT id FROM relay"
TIMEOUT = 10.0  # seconds


class GapTimeout(Naive):
    """A number that was rolled back looks like one that is still to come, and the reverse."""

    missing, since = 0, 0.0  # the number that is waited for, and since when

    def due(self, connection: psycopg.Connection) -> list[Row]:
        rows = connection.execute(DUE).fetchall()
        [(last,)] = connection.execute(LAST)
        found: list[Row] = []
        for row in rows:
            if row[1] > last + 1 and not self.waited_for(last + 1):
                break
            found.append(row)
            last = row[1]
        return found

    def waited_for(self, number: int) -> bool:
        """Whether this number has been missing for long enough."""
        if self.missing != number:
            self.missing, self.since = number, self.now
        return self.now - self.since >= TIMEOUT
