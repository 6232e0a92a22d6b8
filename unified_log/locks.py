"""Advisory locks: every lock number that this project uses in its database, in one table."""

from enum import IntEnum

import psycopg

from unified_log.database import one_row

TRY = "SELECT pg_try_advisory_lock(%s)"


class Lock(IntEnum):
    """Work that one session does at a time. A lock ends with its session, or its transaction."""

    LEADER = 7_268_001  # the streamer that drains
    RECONCILIATION = 7_268_002  # the run of the nightly job
    MIGRATION = 7_268_003
    PRUNING = 7_268_004  # the API's worker that deletes old idempotency keys
    ROLLUP = 7_268_005  # the rollup that marks and computes minutes
    MOVE = 7_268_006  # the router's command that moves slots: in each cell's database


def try_lock(connection: psycopg.Connection, lock: Lock) -> bool:
    """Take the lock for this session, unless another session holds it. Never waits."""
    taken: bool = one_row(connection.execute(TRY, [int(lock)]))[0]
    return taken
