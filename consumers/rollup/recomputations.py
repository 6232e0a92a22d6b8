"""Recomputations: a reconciliation's requests to compute minutes anew that it found wrong.

The indexer treats a request as one more mark: the minute is dirty, and is computed with all others,
under the same generation. The statement that computes it also fulfils the request
(`consumers.rollup.minutes`); so the request outlives any crash before, and is done once. A minute
that can't be computed is set aside, and the request with it, until somebody has it tried again.

While a requested minute is dirty, `complete_to` does not rise above it. Nor does it fall: readers
were already told that everything up to there is right.
"""

import psycopg

from consumers.rollup.dirty import Mark

# In the order in which they were made: there is one reconciliation at a time.
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
