"""`python -m demo.embedded`: runs the servers that the settings do not name; migrates the database.

An embedded Postgres runs unless DATABASE_URL is set, an embedded Redis unless REDIS_URL is set.
A server that dies, or whose socket is removed or replaced, is restarted, every time. The database
is migrated once it can be reached, and an embedded one has shown that its data is ours. On SIGTERM
or Ctrl-C, which all processes of the fleet get at the same moment, this one waits for the others to
disconnect from Postgres, then stops the servers, well before honcho would kill it. It exits by
itself only when a server can never start, the database can't be migrated, or its folder is
unusable, damaged or another fleet's: damaged, if a server exits before it has ever served.

Killed at any step, this process leaves behind only what the next start repairs:

1. While the sockets' folder is made: the folder, or a link `run.new`, which is replaced.
2. While Postgres' data folder is created: a folder `postgres.new`, which is deleted.
3. Before the database is created, or while it is migrated: the next start does what is missing; a
   migration is one transaction.
4. While the servers run: on Linux the kernel ends both at once. A server that survives anyway is
   killed before the new one starts. Whatever Postgres or Redis acknowledged is on disk; stale lock
   files and sockets are removed. The lock on the data folder (flock) belongs to the kernel and ends
   with this process.
5. While stopping: the same.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from demo.embedded import welcome
from demo.embedded.account import server_account
from demo.embedded.failures import NeverStarts
from demo.embedded.folder import lock
from demo.embedded.lifecycle import Server
from demo.embedded.servers import Postgres, Redis
from demo.embedded.sockets import Sockets
from demo.embedded.supervision import POLL, Supervised, stop_last
from rocket_rides import service, settings
from rocket_rides.parent_death import preexec_die_with_parent
from unified_log import errors, process

# It waits for the server, and says what it did.
MIGRATE = (sys.executable, "-m", "migrations")


def main() -> None:
    """Run the process `servers` of the Procfile."""
    process.take_no_arguments("demo.embedded", __doc__)
    config = settings.load()
    service.configure(config)
    stop = service.stop_on_signals()
    os.umask(0o022)  # the servers' user, who is not root, has to get into the data folder
    try:
        if config.embedded_postgres or config.embedded_redis:
            account = server_account()
            if config.embedded_postgres:
                account.require_name()
            lock(config.data_dir)
            with Sockets(config.data_dir, account) as sockets:
                run([*servers(config, sockets.folder)], config, stop, sockets)
        else:
            run([], config, stop)
    except NeverStarts as error:
        raise SystemExit(errors.in_one_line(error)) from None


def servers(config: settings.Settings, sockets: Path) -> Iterator[Server]:
    """Redis first: it starts at once, so whoever waits for Postgres finds both ready."""
    if config.embedded_redis:
        yield Redis(config.data_dir, sockets)
    if config.embedded_postgres:
        yield Postgres(config.data_dir, sockets)


def run(
    servers: Sequence[Server],
    config: settings.Settings,
    stop: process.Stop,
    sockets: Sockets | None = None,
) -> None:
    """Keep the servers running and migrate the database; stop the servers when asked to.

    Once it is migrated, tell the user what to do with the fleet. Raises SystemExit where the
    migration fails. Its process has said why, unless it was killed.
    """
    supervised = [Supervised(server) for server in servers]
    migration: subprocess.Popen[bytes] | None = None
    is_migrated = False
    try:
        while not stop.wait(POLL):
            if sockets:
                sockets.keep()
            for server in supervised:
                server.revive(stop)
            if migration is None and all(server.running for server in servers):
                migration = subprocess.Popen(MIGRATE, preexec_fn=preexec_die_with_parent())
            if migration and not is_migrated and (status := migration.poll()) is not None:
                if status < 0:
                    raise SystemExit(f"the migration was killed by signal {-status}")
                if status:
                    raise SystemExit(status)
                is_migrated = True
                welcome.start(config, stop)
    finally:
        if migration:
            migration.kill()  # it is one transaction
            migration.wait()
        stop_last(servers)


if __name__ == "__main__":
    main()
