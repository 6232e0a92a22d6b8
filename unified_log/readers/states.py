"""Whether a state goes with its checkpoint: else a recount would count its records twice."""

import psycopg

from unified_log.database import one_row

ADVICE = (
    "Each table of it has to go with the checkpoint: FOREIGN KEY (kind, name)"
    " REFERENCES readers (kind, name) ON DELETE CASCADE"
)
# What a transaction writes to it keeps locked to its end, also where ON CONFLICT DO NOTHING inserts
# nothing, since the row is there already. (pg_stat_xact_user_tables would not say that, and counts
# rows of earlier transactions, until the session reports them.)
WRITTEN = """
    SELECT coalesce(array_agg(relation), '{}') FROM pg_locks
    WHERE pid = pg_backend_pid() AND locktype = 'relation' AND mode = 'RowExclusiveLock'
"""
# A partition has its table's foreign keys.
OUTLIVING = """
    WITH RECURSIVE going AS (
        SELECT 'readers'::regclass::oid AS id
        UNION
        SELECT conrelid FROM pg_constraint JOIN going ON confrelid = going.id
        WHERE contype = 'f' AND confdeltype = 'c'
    )
    SELECT string_agg(oid::regclass::text, ', ' ORDER BY oid) FROM pg_class
    WHERE oid = ANY(%s::oid[]) AND oid NOT IN (SELECT id FROM going)
      AND relkind IN ('r', 'f') AND relpersistence <> 't'
      AND relnamespace <> 'pg_catalog'::regnamespace
"""


def written(connection: psycopg.Connection) -> set[int]:
    """The relations, by oid, to which the current transaction writes."""
    return set(one_row(connection.execute(WRITTEN))[0])


def outliving(connection: psycopg.Connection, relations: set[int]) -> str:
    """The names of those tables among them whose rows stay when the checkpoint is deleted."""
    return one_row(connection.execute(OUTLIVING, [[*relations]]))[0] or ""
