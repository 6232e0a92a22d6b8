"""Arrivals: which of the entries that a worker is given are about a ride whose receipt may be due.

As for every reader, an entry is judged by what the streamer had committed after it was read: its
term and its id say whether it is about a ride of this database (`rocket_rides.terms`). One past
`last_sent` is held until the streamer has committed it: it stays pending. One about a ride up to
`complete_to` is done with: every ride up to there has an outcome.
"""

from collections.abc import Mapping
from typing import NamedTuple

import psycopg

from consumers.belief import NOTHING, Bounds, Unbelieved
from consumers.belief import SetAside as DeadLetter
from rocket_rides.database import LAST_DRAWN
from rocket_rides.log import Entry, Invalid, decode
from rocket_rides.terms import UNLESS_KNOWN, Range, StateLost, Terms

KIND = "receipts"  # of a consumer, as whose dead letters what it sets aside is listed

BOUNDS = f"""
    SELECT last_sent_id, complete_to, ({LAST_DRAWN}), {UNLESS_KNOWN}
    FROM streamer_state CROSS JOIN receipts_state
"""  # noqa: S608
SET_ASIDE = """
    INSERT INTO dead_letters (consumer_kind, consumer_name, redis_id, fields, reason)
    VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""


class Arrived(NamedTuple):
    """Entries, sorted out. Whatever is not named is to be acknowledged: `done`."""

    news: list[tuple[str, int]]  # entry, ride
    held: list[Entry]
    done: list[str]
    dead: list[DeadLetter]
    unbelieved: Unbelieved


class Arrivals:
    """Sorts out the entries of one group."""

    def __init__(self, connection: psycopg.Connection, group: str) -> None:
        self._connection = connection
        self._group = group
        self._terms = Terms()

    def sort_out(self, entries: list[Entry]) -> Arrived:
        """Judge entries that were read before this call. What is no record is set aside.

        Raises psycopg.Error, and StateLost.
        """
        last_sent, complete_to, ranges = self._bounds()
        arrived = Arrived([], [], [], [], Unbelieved())
        for entry in entries:
            try:
                record = decode(entry.fields)
            except Invalid as reason:
                arrived.dead.append(DeadLetter(entry, str(reason)))
                arrived.done.append(entry.redis_id)
                continue
            after, upto = ranges.get(record.term, NOTHING)
            if not after < record.id <= upto:
                arrived.unbelieved.add(record, Bounds(last_sent, ranges))
                arrived.done.append(entry.redis_id)
            elif record.id > last_sent:
                arrived.held.append(entry)
            elif record.id <= complete_to:
                arrived.done.append(entry.redis_id)
            else:
                arrived.news.append((entry.redis_id, record.id))
        for letter in arrived.dead:
            found = letter.entry
            values = [KIND, self._group, found.redis_id, found.fields, letter.reason]
            self._connection.execute(SET_ASIDE, values)
        return arrived

    def first_of_ours(self, entries: list[Entry]) -> int | None:
        """The ride of the first entry that is about one of this database, sent or to be committed.

        For entries that were read before this call. Raises psycopg.Error, and StateLost.
        """
        _, _, ranges = self._bounds()
        for entry in entries:
            try:
                record = decode(entry.fields)
            except Invalid:
                continue
            after, upto = ranges.get(record.term, NOTHING)
            if after < record.id <= upto:
                return record.id
        return None

    def _bounds(self) -> tuple[int, int, Mapping[bytes, Range]]:
        """`last_sent`, `complete_to`, and which rides are true under each term."""
        row = self._connection.execute(BOUNDS, {"known": self._terms.newest}).fetchone()
        if row is None:
            raise StateLost
        last_sent, complete_to, last_drawn, terms = row
        # What was sent was drawn, even if the sequence was set back since.
        return last_sent, complete_to, self._terms.update(terms, max(last_drawn, last_sent))
