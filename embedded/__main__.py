"""`python -m embedded`: the servers that the settings do not name, and the newest schema.

An embedded Postgres runs unless DATABASE_URL is set, an embedded Redis unless REDIS_URL is set;
a server that dies is started again, for ever. The database is migrated once it can be reached. The
process ends when it is told to, after the other processes: they get their signal at the same
moment, so it waits until they have hung up, and stops the servers well before honcho kills it.
It ends by itself, with status 1, only when its data folder is another fleet's, or unusable, or
damaged: when a server that has not served yet gives the same reason to end again and again.

Killed at any step, this process leaves behind only what the next start repairs:

1. While Postgres' data folder is being made: a folder `postgres.new`, which is thrown away.
2. Before the database is created, or while it is migrated: a start does what is still missing;
   a migration is one transaction.
3. While the servers run: on Linux the kernel ends both at once. A server that did outlive us is
   killed before the new one starts. What Postgres or Redis acknowledged is on disk; their files
   carry the locks and sockets of the dead, which are removed. The lock on the data folder is the
   kernel's (flock) and is gone with us.
4. While stopping: the same.
"""

import contextlib
import fcntl
import logging
import os
from collections.abc import Sequence
from pathlib import Path

import alembic.util
import psycopg
import sqlalchemy.exc

from embedded.account import make_public
from embedded.failures import NeverStarts
from embedded.lifecycle import Server
from embedded.servers import Postgres, Redis
from embedded.supervision import POLL, BackOff, Supervised, stop_last
from embedded.welcome import Welcome
from migrations import upgrade
from rocket_rides import errors, fleet, process, settings, waiting

logger = logging.getLogger("embedded")


def main() -> None:
    """Run the process `servers` of the Procfile."""
    process.take_no_arguments("embedded", __doc__)
    config = settings.load()
    process.log_to_stdout(config.log_level)
    stop = process.Stop().on_signals()
    servers: list[Server] = []
    # Redis first: it is there in no time, and what waits for Postgres finds both.
    if config.embedded_redis:
        servers.append(Redis(config.data_dir, config.socket_dir))
    if config.embedded_postgres:
        servers.append(Postgres(config.data_dir, config.socket_dir))
    try:
        if servers:
            lock(config.data_dir)
        run(servers, config, stop)
    except NeverStarts as error:
        raise SystemExit(errors.in_one_line(error)) from None
    with contextlib.suppress(OSError):
        config.socket_dir.rmdir()


def lock(data: Path) -> None:
    """Lock the data folder until this process ends; raise NeverStarts when another one has it."""
    try:
        descriptor = os.open(make_public(data) / fleet.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 20)
            if not owner:  # it is about to write its number
                raise NeverStarts(f"another fleet is just starting on {data}") from None
            raise NeverStarts(fleet.in_the_way(data, int(owner))) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
    except OSError as error:
        raise NeverStarts(f"the folder {data} can't be used: {error.strerror}") from None


def run(servers: Sequence[Server], config: settings.Settings, stop: process.Stop) -> None:
    """Keep the servers running and migrate the database; stop them when asked to.

    Once the fleet is up, say what a person can do with it.
    """
    supervised = [Supervised(server) for server in servers]
    migrated, back_off, complaint = False, BackOff(), waiting.Complaint()
    welcome = Welcome(config)
    try:
        while not stop.wait(POLL):
            for server in supervised:
                server.revive(stop)
            if not migrated and back_off.over and all(server.running for server in servers):
                migrated = migrate(config.postgres_url, complaint)
                back_off.attempted()
            if migrated:
                welcome.once()
    finally:
        stop_last(servers)


def migrate(url: str, complaint: waiting.Complaint) -> bool:
    """Bring the schema up to date; False, and a complaint, when that does not work now."""
    try:
        upgrade(url)
    except (psycopg.Error, alembic.util.CommandError) as error:
        complaint(f"not migrated yet: {errors.in_one_line(error)}")
        return False
    except sqlalchemy.exc.SQLAlchemyError as error:
        complaint(f"not migrated yet: {errors.in_one_line(getattr(error, 'orig', None) or error)}")
        return False
    logger.info("the schema is up to date")
    return True


if __name__ == "__main__":
    main()
