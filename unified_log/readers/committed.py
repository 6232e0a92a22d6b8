"""Which entries of the log count: the one test that every kind of reader asks.

Anyone may write to a Redis stream. An entry is *committed* when its id lies in the range of its
term (`unified_log.terms`); that of the newest goes up to the last number drawn, for what lies past
`last_sent` is about to be committed, or sent again. Any other is ignored, and counted: it is
*foreign* when its term is not this database's, and *uncommitted* when it lies past the end of a
term that is. What is no record at all is *malformed*, and is kept with its reason. None of them
stops a reader.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg

from unified_log.database import in_its_letters
from unified_log.log import Entry, Record
from unified_log.terms import Range, StateLost, Terms

# How far was sent, how far was drawn, and the terms: all of them (`terms.ALL`), or NULL while the
# newest is still the one that is `known`. One statement, so one snapshot.
BOUNDS = """
    SELECT last_sent_id, (SELECT last_value - (NOT is_called)::int FROM log_position),
        CASE WHEN %(known)s::text IS DISTINCT FROM (
            SELECT term FROM terms ORDER BY after DESC LIMIT 1
        ) THEN (
            SELECT coalesce(json_agg(json_build_array(after, term, replaced) ORDER BY after), '[]')
            FROM terms
        ) END
    FROM streamer_state ORDER BY version DESC LIMIT 1
"""
# An entry that is read again, as after a restore of Redis, is there already.
KEEP = """
    INSERT INTO malformed_entries (consumer_kind, consumer_name, redis_id, fields, reason)
    VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (consumer_kind, consumer_name, redis_id) DO NOTHING
"""
NOTHING = Range(0, 0)
LONGEST_TERM = 64  # bytes of a foreign one that are kept: it may be of any size


class Bounds(NamedTuple):
    """How far the log can be believed, by id."""

    last_sent: int  # the streamer has committed everything up to here
    terms: Mapping[bytes, Range]  # which ids each term may have


def is_committed(record: Record, bounds: Bounds) -> bool:
    """Whether a record is this database's; `bounds` were read after it.

    Only up to `bounds.last_sent` it has been committed for good.
    """
    after, upto = bounds.terms.get(record.term, NOTHING)
    return after < record.id <= upto


class KnownTerms:
    """The bounds, as one reader knows them: it fetches the terms only when there is a new one."""

    def __init__(self) -> None:
        self._terms = Terms()

    def ask(self, connection: psycopg.Connection) -> psycopg.Cursor:
        """Ask for the bounds, for entries that were read before this call."""
        return connection.execute(BOUNDS, {"known": self._terms.newest})

    def learn(self, row: tuple[Any, ...] | None) -> Bounds:
        """The bounds, from the answer to BOUNDS. Raises StateLost when there was none."""
        if row is None:
            raise StateLost
        last_sent, last_drawn, terms = row
        # What was sent was drawn, even if the sequence was set back since.
        return Bounds(last_sent, self._terms.update(terms, max(last_drawn, last_sent)))


class Malformed(NamedTuple):
    """An entry that is invalid: not a record, and why."""

    entry: Entry
    reason: str


def keep_malformed(connection: psycopg.Connection, kind: str, name: str, found: Malformed) -> bool:
    """Keep the beginning of an invalid entry; returns whether it is new in the table."""
    entry, reason = found
    reason = in_its_letters(connection, reason)
    values = [kind, name, entry.redis_id, entry.beginning, reason]
    return connection.execute(KEEP, values).rowcount == 1


@dataclass
class Ignored:
    """How many entries were ignored, by the term that they carry."""

    foreign: Counter[bytes] = field(default_factory=Counter)
    uncommitted: Counter[bytes] = field(default_factory=Counter)

    def add(self, record: Record, bounds: Bounds) -> None:
        known = record.term in bounds.terms
        (self.uncommitted if known else self.foreign)[record.term[:LONGEST_TERM]] += 1

    @property
    def total(self) -> int:
        return self.foreign.total() + self.uncommitted.total()
