"""Every lock number that this project uses in its database, in one table."""

from enum import UNIQUE, IntEnum, verify

from unified_log import locks


@verify(UNIQUE)
class Lock(IntEnum):
    """Work that one session does at a time. A lock ends with its session, or its transaction."""

    LEADER = locks.LEADER
    LOG_SCHEMA = locks.SCHEMA
    LOG_CODE = locks.CODE
    RECONCILIATION = 7_268_002  # the run of the nightly job
    MIGRATION = 7_268_003
    PRUNING = 7_268_004  # the API's worker that deletes old idempotency keys
    ROLLUP = 7_268_005  # the rollup that marks and computes minutes
    MOVE = 7_268_006  # the router's command that moves slots: in each cell's database
    CODE = 7_268_009  # with a revision: the sessions of that code
    CLOSINGS = 7_268_010  # whoever reopens one; shared: who begins at one
