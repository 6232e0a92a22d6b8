"""`python -m demo.embedded`: runs the servers that the settings do not name; migrates the database.

An embedded Postgres runs unless DATABASE_URL is set, an embedded Redis unless REDIS_URL is set.
A server that dies is restarted, every time. The database is migrated once it can be reached. On
SIGTERM or Ctrl-C, which all processes of the fleet get at the same moment, this one waits for the
others to disconnect, then stops the servers, well before honcho would kill it. It exits by itself,
with status 1, only when its data folder is unusable, damaged, or in use by another fleet. Damaged
means: a server that has never served exits by itself, or rejects all clients, and says why.

Killed at any step, this process leaves behind only what the next start repairs:

1. While Postgres' data folder is created: a folder `postgres.new`, which is deleted.
2. Before the database is created, or while it is migrated: the next start does what is missing; a
   migration is one transaction.
3. While the servers run: on Linux the kernel ends both at once. A server that survives anyway is
   killed before the new one starts. Whatever Postgres or Redis acknowledged is on disk; stale lock
   files and sockets are removed. The lock on the data folder (flock) belongs to the kernel and ends
   with this process.
4. While stopping: the same.
"""

import contextlib
import fcntl
import logging
import os
from collections.abc import Sequence
from pathlib import Path

import psycopg

from demo.embedded import migration
from demo.embedded.account import make_public
from demo.embedded.failures import NeverStarts
from demo.embedded.lifecycle import Server
from demo.embedded.servers import Postgres, Redis
from demo.embedded.supervision import POLL, BackOff, Supervised, stop_last
from demo.embedded.welcome import Welcome
from rocket_rides import errors, fleet, process, settings, waiting

logger = logging.getLogger("embedded")


def main() -> None:
    """Run the process `servers` of the Procfile."""
    process.take_no_arguments("demo.embedded", __doc__)
    config = settings.load()
    process.begin(config.log_level)
    stop = process.Stop().on_signals()
    servers: list[Server] = []
    try:
        # Redis first: it starts at once, so whoever waits for Postgres finds both ready.
        if config.embedded_redis:
            servers.append(Redis(config.data_dir, config.socket_dir))
        if config.embedded_postgres:
            servers.append(Postgres(config.data_dir, config.socket_dir))
        if servers:
            lock(config.data_dir)
        run(servers, config, stop)
    except (NeverStarts, errors.Refused) as error:
        raise SystemExit(errors.in_one_line(error)) from None
    with contextlib.suppress(OSError):
        config.socket_dir.rmdir()


def lock(data: Path) -> None:
    """Lock the data folder for this process' lifetime; NeverStarts if another process holds it."""
    try:
        descriptor = os.open(make_public(data) / fleet.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 100).split()
            if not owner:  # it has not written its identity yet
                raise NeverStarts(f"another fleet is starting on {data}") from None
            raise NeverStarts(fleet.in_the_way(data, int(owner[0]))) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, fleet.identity(os.getpid()).encode())
    except OSError as error:
        raise NeverStarts(f"the folder {data} can't be used: {error.strerror}") from None


def run(servers: Sequence[Server], config: settings.Settings, stop: process.Stop) -> None:
    """Keep the servers running and migrate the database; stop the servers when asked to.

    Once the fleet is up, tell the user what to do with it.
    """
    supervised = [Supervised(server) for server in servers]
    migrated, back_off, progress = False, BackOff(), waiting.Progress()
    try:
        while not stop.wait(POLL):
            for server in supervised:
                server.revive(stop)
            if not migrated and back_off.over and all(server.running for server in servers):
                migrated = migrate(config.postgres_url, progress)
                back_off.attempted()
                if migrated:
                    Welcome(config).begin(stop)
    finally:
        stop_last(servers)


def migrate(url: str, progress: waiting.Progress) -> bool:
    """Bring the schema up to date; False if that is not possible now, and `progress` says why.

    Raises Refused where only a person can help.
    """
    try:
        migration.migrate(url)
    except errors.Refused:
        raise
    except (errors.Unavailable, psycopg.Error) as error:
        progress.failed(f"not migrated yet: {errors.in_one_line(error)}")
        return False
    progress.made()
    progress.announce("the schema is up to date")
    return True


if __name__ == "__main__":
    main()
