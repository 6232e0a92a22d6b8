"""Forget idempotency keys whose client has long given up.

The table is walked by ranges of its blocks, each visited once, in a transaction of its own: no
index on the time is needed, no snapshot is held for long, and a request that comes with a key just
being deleted waits for milliseconds. Such a key is then new: its ride is taken once more, as the
setting says. One that has not expired is never touched, nor is one that is being written: neither
matches. READ COMMITTED, so that no booking, which is SERIALIZABLE, can fail for it.
"""

import psycopg

from rocket_rides.process import Stop

BLOCKS_AT_A_TIME = 128  # a megabyte

SESSION = {
    "default_transaction_isolation": "read committed",
    "lock_timeout": "1s",
}

# Keys written from now on are younger than the cutoff, in whatever block: the walk ends here.
CUTOFF_AND_BLOCKS = """
    SELECT now() - make_interval(days => %s),
        pg_relation_size('idempotency_keys') / current_setting('block_size')::bigint
"""

# The condition on ctid, a row's place in the table, makes it read these blocks only.
PRUNE_BLOCKS = """
    DELETE FROM idempotency_keys
    WHERE ctid >= %(first)s::tid AND ctid < %(behind)s::tid AND created_at < %(cutoff)s
"""


def prune(connection: psycopg.Connection, days: int, stop: Stop) -> int:
    """Delete the keys older than `days`, or some of them when told to stop; returns how many.

    `connection` is in autocommit mode, with SESSION.
    """
    row = connection.execute(CUTOFF_AND_BLOCKS, [days]).fetchone()
    assert row is not None  # noqa: S101 (a SELECT without FROM gives a row)
    cutoff, blocks = row
    deleted = 0
    for first in range(0, blocks, BLOCKS_AT_A_TIME):
        if stop:
            break
        behind = first + BLOCKS_AT_A_TIME
        values = {"first": f"({first},0)", "behind": f"({behind},0)", "cutoff": cutoff}
        deleted += connection.execute(PRUNE_BLOCKS, values).rowcount
    return deleted
