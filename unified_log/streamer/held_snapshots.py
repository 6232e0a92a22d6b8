"""Who holds the oldest snapshot, and so keeps Postgres from removing dead rows. For the leader.

A transaction that has begun long ago, such as a pg_dump or a session that somebody forgot, a
prepared one, and a standby's feedback: while one of them holds a snapshot, Postgres keeps each row
that was deleted or replaced since. The outbox then grows, and whoever looks for a row in it reads
all that were sent. (What every batch updates is found first: `unified_log/schema/1_log.sql`.)

Postgres hides others' transactions from a role that is not in pg_read_all_stats: it then finds
those of its own user, prepared transactions and slots.
"""

import time
from collections.abc import Callable
from typing import Any

import psycopg

LONG = 60.0  # seconds
# Of those that hold it equally long, who began first: the snapshots of all others include what he
# holds. An application in another database holds nothing here; vacuum holds nothing anywhere,
# whoever began it. CREATE INDEX CONCURRENTLY does hold.
OLDEST = """
    SELECT who, held::text, since, described FROM (
        SELECT 'session ' || pid AS who, held, xact_start AS since, concat(
            coalesce(nullif(application_name, ''), '?'), ', user ', coalesce(usename, '?'), ', ',
            coalesce(state, backend_type)) AS described
        FROM pg_stat_activity CROSS JOIN LATERAL (VALUES (backend_xid), (backend_xmin)) own (held)
        WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
          AND backend_type NOT IN ('autovacuum worker', 'parallel worker')
          AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
        UNION ALL
        SELECT 'prepared transaction ' || quote_literal(gid), transaction, prepared,
               'user ' || owner
        FROM pg_prepared_xacts WHERE database = current_database()
        UNION ALL
        SELECT 'replication slot ' || slot_name, xmin, NULL,
               CASE WHEN active THEN 'feedback of a standby' ELSE 'nobody uses it' END
        FROM pg_replication_slots
    ) holders WHERE held IS NOT NULL ORDER BY age(held) DESC, since LIMIT 1
"""


class HeldSnapshots:
    """Looks who holds the oldest snapshot, from one look to the next. `clock` tells seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._holder: tuple[Any, ...] | None = None
        self._since = 0.0  # when it was first seen
        self._line = ""

    def warnings(self, connection: psycopg.Connection) -> list[str]:
        """A line about who has held it for LONG, always the same; usually none.

        Raises psycopg.Error.
        """
        now, row = self._clock(), connection.execute(OLDEST).fetchone()
        holder = row[:3] if row else None
        if holder != self._holder:
            self._holder, self._since, self._line = holder, now, ""
        if row is None or now - self._since < LONG:
            return []
        if not self._line:
            who, _, since, described = row
            began = f", since {since:%Y-%m-%dT%H:%M:%SZ}" if since else ""
            self._line = (
                f"the oldest snapshot is held by {who} ({described}){began}: until it ends,"
                " Postgres keeps all dead rows, and the outbox grows"
            )
        return [self._line]
