"""Recomputations: how a reconciliation has a minute that it found wrong computed anew.

It leaves a request. The indexer takes that for one more mark: a dirty minute, computed with all
others, under the same generation. Whatever computes the minute next fulfils the request, in the
statement that computes it (`consumers.rollup.minutes`); so a request outlives any crash before, and
is done once. A minute that can't be computed is set aside, and the request with it, until somebody
has it tried again.

While a requested minute is dirty, `complete_to` does not rise. It does not fall either: readers
were told already that everything up to there is right.
"""

import psycopg

from consumers.rollup.dirty import Mark

# In the order in which they came: there is one reconciliation at a time.
PENDING = """
    SELECT minute::text, lowest_ride_id FROM recomputations
    WHERE status = 'pending' ORDER BY id LIMIT %s
"""
GIVE_UP = """
    UPDATE recomputations SET status = 'set aside', changed_at = now()
    WHERE minute = %s::timestamptz AND status = 'pending'
"""


def pending(connection: psycopg.Connection, most: int) -> list[Mark]:
    """Up to `most` minutes that are to be computed anew."""
    return [Mark(*row) for row in connection.execute(PENDING, [most])]


def give_up(connection: psycopg.Connection, minute: str) -> None:
    """End the requests for a minute that is set aside, in the transaction that does that."""
    connection.execute(GIVE_UP, [minute])
