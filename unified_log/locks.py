"""Advisory locks: work that one session does at a time. A lock ends with its session."""

import psycopg

from unified_log.database import one_row

# The numbers that the log uses in its database. An application's own are others.
LEADER = 7_268_001  # the streamer that drains
SCHEMA = 7_268_007  # whoever applies the schema
CODE = 7_268_008  # with a revision: the sessions of that code (`unified_log.schema.serving`)

TRY = "SELECT pg_try_advisory_lock(%s)"


def try_lock(connection: psycopg.Connection, number: int) -> bool:
    """Take the lock for this session, unless another session holds it. Never waits."""
    taken: bool = one_row(connection.execute(TRY, [int(number)]))[0]
    return taken
