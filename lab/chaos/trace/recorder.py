"""Records each transaction, by Postgres' logical decoding, whole and in the order of the commits.

A replication slot keeps the position. It survives a crash of Postgres, but no restore and no
fail-over: these begin another *life* of the database, with the rows in the snapshot of a new slot.
The last commits of a life, which nobody had read yet, are not recorded.
"""

import time
from collections.abc import Callable
from contextlib import closing

import psycopg
from psycopg import ClientCursor

from lab.chaos.drifts import prepare
from lab.chaos.observer import Onlooker
from lab.chaos.trace.pgoutput import Decoder, Row
from lab.chaos.trace.recording import Commit, Life, Recording
from lab.until import until
from unified_log import database
from unified_log.database import one_row
from unified_log.errors import Unavailable, in_one_line

PAUSE = 0.05  # seconds
AT_ONCE = 5000  # changes at once; transactions come whole
LAST_LOOK = 30.0

# What is recorded: enough to tell every step of the core, and the keys.
TABLES = {
    "rides": ("id", "distance"),
    "ratings": ("id",),
    "notes": ("id",),
    "staged_log_records": ("id", "data"),
    "streamer_state": ("last_sent_id",),
    "terms": ("after", "term"),
    "checkpoints": (
        *("kind", "name", "last_redis_id", "position", "resets_applied"),
        *("gaps_healed", "records_healed"),
        *("resends_skipped", "entries_ignored"),
    ),
    "consumer_states": ("name", "total_distance", "rides", "distance_healed"),
    "held_out_records": ("kind", "name", "position"),
    "resets": ("consumer_name", "status"),
    "drifts": ("kind", "victim", "mark"),
    "tamperings": ("what",),
}
PUBLICATION = "recording"
PUBLISH = f"""
    DROP PUBLICATION IF EXISTS {PUBLICATION};
    CREATE PUBLICATION {PUBLICATION} FOR TABLE {", ".join(TABLES)}
"""
IN_RECOVERY = "SELECT pg_is_in_recovery()"
SLOT = "SELECT FROM pg_replication_slots WHERE slot_name = %s"
# Its snapshot is that of the place in the WAL where the slot begins.
MAKE = "CREATE_REPLICATION_SLOT {} LOGICAL pgoutput EXPORT_SNAPSHOT"
# A slot that nobody reads would keep the WAL.
DROP_OTHERS = """
    SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
    WHERE slot_name LIKE 'recorder_%' AND NOT active
"""
# Peek, and advance later: an answer may be lost with its connection.
PEEK = """
    SELECT data FROM pg_logical_slot_peek_binary_changes(
        %s, NULL, %s, 'proto_version', '1', 'publication_names', %s
    )
"""
TAKE = "SELECT pg_replication_slot_advance(%s, '0/0'::pg_lsn + %s::numeric)"
# Each look decodes from the last snapshot of running transactions in the WAL. This writes one;
# Postgres itself does so every 15 s.
MARK = "SELECT pg_log_standby_snapshot()"
MARK_EVERY = 1.0  # seconds
MARKS_SINCE = 160_000  # the version of Postgres


class Recorder(Onlooker):
    """Records what is committed on the Postgres at `url`, which runs with wal_level=logical."""

    def __init__(self, url: Callable[[], str], recording: Recording) -> None:
        super().__init__("recorder", url)
        self._recording = recording
        self._slot = ""
        self._slots = 0  # ever asked for
        self._taken = 0  # the position after the last commit that was written
        self._marked = 0.0
        self._has_all = False  # once it has ended
        self._give_up_at = float("inf")  # on the monotonic clock

    def start(self) -> None:
        super().start()
        until(lambda: self._slot, "nothing is recorded")

    def look_on(self) -> None:
        why = "nothing failed"
        while not self._has_all:
            if time.monotonic() > self._give_up_at:
                raise TimeoutError(f"it has not seen what came last: {why}")
            try:
                found = database.connect(self._url(), "chaos", search_path="public, chaos")
                with closing(found) as connection:
                    self._record(connection)
            except (psycopg.Error, Unavailable) as error:
                why = in_one_line(error)
                time.sleep(PAUSE)

    def _record(self, connection: psycopg.Connection) -> None:
        if one_row(connection.execute(IN_RECOVERY))[0]:  # a standby, or one that is being restored
            time.sleep(PAUSE)
            return
        if not connection.execute(SLOT, [self._slot]).rowcount:
            self._begin_life(connection)
        while not self._has_all:
            over = self.ending.wait(PAUSE)  # once more, for the last commits
            while self._take(connection):
                pass
            self._has_all = over

    def _begin_life(self, connection: psycopg.Connection) -> None:
        prepare(connection)
        connection.execute(PUBLISH, prepare=False)
        connection.execute(DROP_OTHERS)
        self._slots += 1
        slot = f"recorder_{self._slots}"
        # It takes no settings and no prepared statements.
        making = psycopg.connect(  # noqa: TID251
            self._url(), replication="database", autocommit=True, cursor_factory=ClientCursor
        )
        with closing(making):
            _, _, snapshot, _ = one_row(making.execute(MAKE.format(slot)))
            tables = read_tables(connection, snapshot)  # the next command of `making` ends it
        self._recording.write(Life(time.monotonic(), tables))
        self._slot, self._taken = slot, 0

    def _take(self, connection: psycopg.Connection) -> bool:
        """Write what has been committed since; returns whether there was anything."""
        values = [self._slot, AT_ONCE, PUBLICATION]
        messages = [data for (data,) in connection.execute(PEEK, values, binary=True)]
        for end, changes in Decoder(TABLES).transactions(messages):
            if end > self._taken:  # after a crash of Postgres, some commits come again
                self._recording.write(Commit(time.monotonic(), changes))
                self._taken = end
        if messages:
            connection.execute(TAKE, [self._slot, self._taken])
            self._mark(connection)
        return bool(messages)

    def _mark(self, connection: psycopg.Connection) -> None:
        known = connection.info.server_version >= MARKS_SINCE
        if known and time.monotonic() - self._marked > MARK_EVERY:
            connection.execute(MARK)
            self._marked = time.monotonic()

    def end(self) -> None:
        """Record the last commits, and return. Gives up after LAST_LOOK seconds."""
        self._give_up_at = time.monotonic() + LAST_LOOK
        super().end()


def read_tables(connection: psycopg.Connection, snapshot: str) -> dict[str, list[Row]]:
    """All rows of TABLES, as text, in an exported snapshot."""
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    tables: dict[str, list[Row]] = {}
    with connection.transaction():
        connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        for table, names in TABLES.items():
            columns = ", ".join(f"{name}::text" for name in names)
            rows = connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1")  # noqa: S608
            tables[table] = [dict(zip(names, row, strict=True)) for row in rows]
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return tables
