"""A Postgres, and a new standby for each fail-over."""

from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg

from demo.embedded.servers import Postgres
from lab.chaos.backup import base_backup, emptied
from lab.chaos.hosts import Pair, PostgresHost
from lab.chaos.proxy import HOST
from lab.until import until
from unified_log import database
from unified_log.errors import Unavailable

# Keep the WAL that a standby still needs.
SETTINGS = {
    "wal_keep_size": "128MB",
    "wal_retrieve_retry_interval": "100ms",
    "wal_level": "logical",  # for `lab.chaos.trace.recorder`
}

WAIT_FOR_STANDBY = "ALTER SYSTEM SET synchronous_standby_names = '*'"
WAIT_FOR_NOBODY = "ALTER SYSTEM RESET synchronous_standby_names"
RELOAD = "SELECT pg_reload_conf()"
IS_WAITED_FOR = "SELECT coalesce(bool_or(sync_state = 'sync'), false) FROM pg_stat_replication"
WRITTEN = "SELECT pg_current_wal_flush_lsn()"
HAS = "SELECT coalesce(pg_last_wal_receive_lsn() >= %s, false)"
PROMOTE = "SELECT pg_promote()"


class PostgresPair(Pair[PostgresHost]):
    """Two servers in `folder`. Methods raise TimeoutError unless they name another error."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            PostgresHost(folder / "data", folder / "run", SETTINGS),
            PostgresHost(folder / "standby", folder / "run2", SETTINGS),
        )

    def start(self) -> None:
        """Start the primary, and no standby yet."""
        self.primary.keep()
        for proxy in self.proxies:
            proxy.start()

    def attach(self) -> None:
        """Make a new standby, by a base backup. Raises ServerFailed."""
        self.link.server = self.primary.socket
        folder = emptied(self.replica)
        link = (f"--host={HOST}", f"--port={self.link.port}", "--write-recovery-conf")
        base_backup(self.replica, folder, *link)
        self.replica.keep()
        self.replica.wait_until_it_serves()

    def detach(self) -> None:
        """End the standby; the primary no longer waits for one."""
        self._tell(WAIT_FOR_NOBODY)
        self.replica.end()

    def wait_for_standby(self) -> None:
        """Have the primary answer each commit only when the standby has it on disk."""
        self._tell(WAIT_FOR_STANDBY)
        until(lambda: ask(self.primary, IS_WAITED_FOR), "no standby is waited for")

    def catch_up(self) -> None:
        """Return when the standby has what the primary had written by now."""
        lsn = until(lambda: ask(self.primary, WRITTEN), "the primary does not answer")
        until(lambda: ask(self.replica, HAS, lsn), "the standby does not follow")

    def promote(self) -> None:
        """Make the standby the primary, as that is down. Raises psycopg.Error or Unavailable."""
        with closing(connect(self.replica)) as standby:
            standby.execute(PROMOTE)
        self.exchange()

    def _tell(self, setting: str) -> None:
        def tell() -> bool:
            with closing(connect(self.primary)) as primary:
                primary.execute(setting)
                return bool(primary.execute(RELOAD))

        until(tell, f"the primary can't be told to {setting}", away=(psycopg.Error, Unavailable))


def connect(server: Postgres) -> psycopg.Connection:
    """To the database, without a proxy. Raises psycopg.Error or Unavailable."""
    return database.connect(server.url, "chaos")


def ask(server: Postgres, question: str, *values: Any) -> Any:
    """The value that the query returns; None where the server does not answer."""
    with suppress(psycopg.Error, Unavailable), closing(connect(server)) as connection:
        return database.one_row(connection.execute(question, values))[0]
    return None
